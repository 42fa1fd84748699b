// Deaths and malformed messages: coordinators and launchers as processes under kill -9, and hostile
// clients at the coordinator's port.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/fault_injection.h"
#include "base/id.h"
#include "net/websocket.h"
#include "rendezvous/integration/job_harness.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

using job::JobState;
using job::TaskState;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Prints numbered lines until the file `stop` exists in the job's directory, then "end".
constexpr const char* kCount =
    "echo pid $$; i=0; while [ ! -e \"$SHOAL_JOB_DIR/stop\" ]; do i=$((i+1)); echo line $i; "
    "sleep 0.003; done; echo end";

// Lines 1, 2, 3 … after the first, then "end": nothing lost, nothing twice.
void ExpectWhole(const std::string& log) {
  size_t at = log.find('\n') + 1;
  for (int i = 1;; ++i) {
    const size_t end = log.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    const std::string line = log.substr(at, end - at);
    at = end + 1;
    if (line == "end") break;
    ASSERT_EQ(line, "line " + std::to_string(i));
  }
  EXPECT_EQ(at, log.size());
}

TEST(Faults, AKilledCoordinatorIsStartedAgainAndTheProgramsNeverNotice) {
  job::Job job = JobOf({ShellRole("worker", 2, kCount)});
  JobHarness harness(job);
  harness.StartController();
  for (int i = 0; i < 2; ++i) harness.SpawnLauncher("worker", i);
  for (int round = 0; round < 3; ++round) {
    const pid_t coordinator = harness.SpawnCoordinator();
    const size_t before = harness.LogOf("worker", 1).size();
    ASSERT_TRUE(harness.Until([&] {
      return harness.client->connected() && harness.LogOf("worker", 1).size() > before + 100;
    }));
    harness.KillProcess(coordinator, SIGKILL);
  }
  // A result that arrives while no coordinator runs is kept.
  ASSERT_TRUE(WriteFileAtomically(harness.dir() + "/stop", "", 0600, false).ok());
  harness.SpawnCoordinator();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(harness.Count("worker", i, TaskState::kRunning), 1);
    EXPECT_EQ(harness.verdict->tasks[static_cast<size_t>(i)].attempts, 1);
    ExpectWhole(harness.LogOf("worker", i));
    EXPECT_EQ(harness.LogOf("worker", i), harness.Segment("worker", i));
  }
  EXPECT_TRUE(harness.logs_contiguous);
  int64_t seq = 0;
  for (const JobEvent& event : harness.events) {
    if (event.seq == 0) continue;
    EXPECT_GT(event.seq, seq);
    seq = event.seq;
  }
}

// Prints the numbers from 1 to 200,000, some 40 times a second (50 MB), until the file `stop`
// exists in the job's directory. Twice a second where processes are slow (SHOAL_TEST_PATIENCE):
// under a thread sanitizer what piles up while there is no coordinator takes minutes to read.
std::string Flood() {
  const bool slow = std::getenv("SHOAL_TEST_PATIENCE") != nullptr;
  return std::string("while [ ! -e \"$SHOAL_JOB_DIR/stop\" ]; do seq 1 200000; sleep ") +
         (slow ? "0.5" : "0.02") + "; done; echo end";
}

void ExpectRounds(const std::string& log) {
  std::string round;
  for (int i = 1; i <= 200'000; ++i) round += std::to_string(i) + "\n";
  size_t at = 0;
  for (; log.compare(at, round.size(), round) == 0; at += round.size()) {
  }
  EXPECT_GT(at, 0u);
  EXPECT_EQ(log.substr(at), "end\n");
}

// 0: the launcher writes its log itself. 1: the coordinator writes it. 2: the launcher begins,
// until its disk fails.
TEST(Faults, AtFullSpeedNothingIsLostAndOffsetsAreExactWhileCoordinatorsDie) {
  JobHarness harness(JobOf({ShellRole("worker", 3, Flood())}));
  harness.StartController();
  for (int i = 0; i < 3; ++i) {
    if (i == 1) ::setenv("SHOAL_FAULTS", "launcher.log=EIO@1", 1);
    if (i == 2) ::setenv("SHOAL_FAULTS", "launcher.log=EIO@20", 1);
    harness.SpawnLauncher("worker", i);
    ::unsetenv("SHOAL_FAULTS");
  }
  for (int round = 0; round < 3; ++round) {
    const pid_t coordinator = harness.SpawnCoordinator();
    std::vector<size_t> before;
    for (int i = 0; i < 3; ++i) before.push_back(harness.LogOf("worker", i).size());
    ASSERT_TRUE(harness.Until([&] {
      for (int i = 0; i < 3; ++i) {
        if (harness.LogOf("worker", i).size() <= before[static_cast<size_t>(i)] + 2'000'000) {
          return false;
        }
      }
      return true;
    }));
    harness.KillProcess(coordinator, SIGKILL);
  }
  ASSERT_TRUE(WriteFileAtomically(harness.dir() + "/stop", "", 0600, false).ok());
  harness.SpawnCoordinator();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(harness.Count("worker", i, TaskState::kRunning), 1);
    ExpectRounds(harness.LogOf("worker", i));
    EXPECT_TRUE(harness.LogOf("worker", i) == harness.Segment("worker", i));
  }
  EXPECT_TRUE(harness.logs_contiguous);
}

TEST(Faults, AProgramWhoseDirectoriesFindNoRoomIsTriedAgain) {
  JobHarness harness(JobOf({ShellRole("worker", 1, "echo ran")}));
  harness.StartController();
  ::setenv("SHOAL_FAULTS", "launcher.prepare=ENOSPC@1", 1);
  harness.SpawnLauncher("worker", 0);
  ::unsetenv("SHOAL_FAULTS");
  harness.SpawnCoordinator();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  EXPECT_EQ(harness.verdict->tasks[0].attempts, 1);
  EXPECT_EQ(harness.LogOf("worker", 0), "ran\n");
}

TEST(Faults, AControllerThatCannotReadItsTokenForAMomentReadsItAgain) {
  JobHarness harness(JobOf({ShellRole("worker", 1, "echo ran")}));
  ASSERT_TRUE(SetFaults("client.token=EIO@1").ok());
  harness.StartController();
  EXPECT_TRUE(SetFaults("").ok());
  harness.SpawnLauncher("worker", 0);
  harness.SpawnCoordinator();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
}

// Runs the harness for so long.
void Pass(JobHarness* harness, Duration time) {
  const TimePoint until = RealClock::Get()->Now() + time;
  harness->Until([&] { return RealClock::Get()->Now() >= until; });
}

// Slurm's suspend stops the tasks on their nodes, while the coordinator runs on.
TEST(Faults, SilenceOfProcessesThatTheEngineHasStoppedIsNoLoss) {
  for (const bool held : {true, false}) {
    JobHarness harness(JobOf({ShellRole("worker", 1, kCount)}));
    CoordinatorOptions options;
    options.limits.suspect = seconds(1);
    options.limits.dead = milliseconds(1'500);
    harness.StartCoordinator(options);
    harness.StartController();
    const pid_t launcher = harness.SpawnLauncher("worker", 0);
    ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", 0).size() > 100; }));
    if (held) harness.client->Hold(true, "Slurm has suspended the job");
    ASSERT_EQ(::kill(launcher, SIGSTOP), 0);
    Pass(&harness, seconds(3));
    ASSERT_EQ(::kill(launcher, SIGCONT), 0);
    if (held) {
      EXPECT_EQ(harness.Count("worker", 0, TaskState::kEnded), 0);
      harness.client->Hold(false, "Slurm has resumed the job");
      ASSERT_TRUE(WriteFileAtomically(harness.dir() + "/stop", "", 0600, false).ok());
      EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
      EXPECT_EQ(harness.verdict->tasks[0].attempts, 1);
    } else {
      EXPECT_EQ(harness.Count("worker", 0, TaskState::kEnded), 1) << "the same without the word";
    }
  }
}

TEST(Faults, AKilledLauncherIsATransientLossAndTheNewOneGetsAGeneration) {
  job::Role server = ShellRole("server", 1,
                               "echo attempt $SHOAL_ATTEMPT; "
                               "touch \"$SHOAL_JOB_DIR/said$SHOAL_ATTEMPT\"; exec sleep 1000");
  server.ports = {{"ps", false}};
  server.follows = "worker";
  server.restart.backoff = milliseconds(10);
  job::Job job = JobOf({ShellRole("worker", 1,
                                  "echo up; while ! grep -q '\"generation\":2' "
                                  "\"$SHOAL_CLUSTER_FILE\" || [ ! -e \"$SHOAL_JOB_DIR/said1\" ]; "
                                  "do sleep 0.01; done"),
                        server});
  JobHarness harness(job);
  harness.StartCoordinator();
  harness.StartController();
  harness.SpawnLauncher("worker", 0);
  const pid_t first = harness.SpawnLauncher("server", 0, 0);
  ASSERT_TRUE(harness.Until([&] {
    return harness.LogOf("server", 0, 0) == "attempt 0\n" && harness.LogOf("worker", 0) == "up\n";
  }));
  harness.KillProcess(first, SIGKILL);
  harness.SpawnLauncher("server", 0, 1);
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  EXPECT_EQ(harness.LogOf("server", 0, 1), "attempt 1\n");
  EXPECT_EQ(harness.coordinator_->core().generation(), 2);
}

TEST(Faults, ALauncherWithoutCoordinatorStopsItsProgramAndEndsWith77) {
  job::Job job = JobOf({ShellRole("worker", 1, "echo $$; exec sleep 1000")});
  job.limits.coordinator_timeout = milliseconds(300);
  JobHarness harness(job);
  harness.StartCoordinator();
  harness.StartController();
  const pid_t launcher = harness.SpawnLauncher("worker", 0);
  ASSERT_TRUE(harness.Until([&] { return !harness.LogOf("worker", 0).empty(); }));
  harness.client.reset();
  harness.CrashCoordinator();
  ASSERT_TRUE(harness.Until([&] { return harness.ExitCodeOf(launcher).has_value(); }, seconds(10)));
  EXPECT_EQ(harness.ExitCodeOf(launcher), 77);
}

TEST(Faults, ALauncherThatIsToldToStopDrainsAndDeliversWhatDoesNotCount) {
  JobHarness harness(JobOf({ShellRole("worker", 1,
                                      "trap 'echo saved; exit 0' TERM; echo up; "
                                      "while :; do sleep 0.01; done")}));
  harness.StartCoordinator();
  harness.StartController();
  const pid_t launcher = harness.SpawnLauncher("worker", 0);
  ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", 0) == "up\n"; }));
  harness.KillProcess(launcher, SIGTERM);
  ASSERT_TRUE(harness.Until([&] { return harness.Count("worker", 0, TaskState::kEnded) == 1; }));
  // Between them the shell may say that its `sleep` was terminated.
  EXPECT_THAT(harness.LogOf("worker", 0), AllOf(StartsWith("up\n"), EndsWith("saved\n")));
  for (const JobEvent& event : harness.events) {
    if (event.type != JobEvent::Type::kTask || !event.end) continue;
    EXPECT_EQ(event.end->kind, job::EndKind::kLost);
    EXPECT_TRUE(event.will_restart);
  }
  EXPECT_FALSE(harness.verdict);
}

TEST(Faults, AJournalWithATornTailIsCutAndGoesOn) {
  JobHarness harness(JobOf({ShellRole("worker", 1, kCount)}));
  harness.StartController();
  harness.SpawnLauncher("worker", 0);
  const pid_t first = harness.SpawnCoordinator();
  ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", 0).size() > 50; }));
  harness.KillProcess(first, SIGKILL);
  std::ofstream(harness.dir() + "/journal", std::ios::app | std::ios::binary)
      << std::string("\x30\0\0\0torn", 8);
  ASSERT_TRUE(WriteFileAtomically(harness.dir() + "/stop", "", 0600, false).ok());
  harness.SpawnCoordinator();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  EXPECT_EQ(harness.Count("worker", 0, TaskState::kRunning), 1);
}

TEST(Faults, ACoordinatorOfAnEndedJobTellsTheVerdictAgain) {
  JobHarness harness(JobOf({ShellRole("worker", 1, "exit 0")}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  ASSERT_TRUE(harness.Until([&] { return harness.coordinator_end.has_value(); }));
  harness.CrashCoordinator();
  harness.client.reset();
  harness.client_closed.reset();
  harness.verdict.reset();
  harness.StartCoordinator();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
}

TEST(Faults, OnlyOneCoordinatorAJob) {
  JobHarness harness(JobOf({ShellRole("worker", 1, "exit 0")}));
  harness.StartCoordinator();
  CoordinatorOptions options;
  options.job_dir = harness.dir();
  const auto second = Coordinator::Start(&harness.loop(), options, [](const Status&) {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr("another coordinator of this job runs"));
}

TEST(Faults, ARestartedCoordinatorTakesItsOldPort) {
  JobHarness harness(JobOf({ShellRole("worker", 1, "exit 0")}));
  harness.StartCoordinator();
  const uint16_t port = harness.coordinator_->port();
  harness.CrashCoordinator();
  harness.StartCoordinator();
  EXPECT_EQ(harness.coordinator_->port(), port);
}

TEST(Faults, AWrongTokenGetsOneClearError) {
  JobHarness harness(JobOf({ShellRole("worker", 1, "exit 0")}));
  harness.StartCoordinator();
  CoordinatorClientOptions options;
  options.token = NewToken();
  harness.StartController(options);
  ASSERT_TRUE(harness.Until([&] { return harness.client_closed.has_value(); }));
  EXPECT_EQ(harness.client_closed->code(), Code::kUnauthenticated);
  EXPECT_THAT(harness.client_closed->message(), HasSubstr("wrong token"));
  EXPECT_TRUE(harness.events.empty());
}

TEST(Faults, AClientWithoutACoordinatorGivesUp) {
  JobHarness harness(JobOf({ShellRole("worker", 1, "exit 0")}));
  CoordinatorClientOptions options;
  options.give_up_after = milliseconds(30);
  harness.StartController(options);
  ASSERT_TRUE(harness.Until([&] { return harness.client_closed.has_value(); }));
  EXPECT_EQ(harness.client_closed->code(), Code::kUnavailable);
}

// A WebSocket client that sends arbitrary messages.
class Stranger {
 public:
  explicit Stranger(JobHarness* harness) : bench_(harness) {
    net::ConnectOptions to;
    to.host = "127.0.0.1";
    to.port = harness->coordinator_->port();
    to.path = kPath;
    const auto connecting = net::Connect(&harness->loop(), to, [this](auto socket) {
      ASSERT_TRUE(socket.ok());
      socket_ = std::move(socket).value();
      socket_->Start([this](std::string_view bytes, bool) { got.emplace_back(bytes); },
                     [this](const Status&) { closed = true; });
    });
    EXPECT_TRUE(harness->Until([&] { return !got.empty(); }));
  }
  // Proves the token.
  void Prove(json::object hello) {
    std::string type;
    const auto challenge = ParseMessage(got[0], &type);
    const std::string server = GetStringOr(*challenge, "nonce", ""), mine = RandomHex(32);
    const std::string token = bench_->ReadOr(bench_->dir() + "/token", "");
    Say(Message("proof", {{"protocol", 1},
                          {"nonce", mine},
                          {"proof", ClientProof(token, server, mine)},
                          {"hello", std::move(hello)}}));
    EXPECT_TRUE(bench_->Until([&] { return got.size() > 1; }));
  }
  void Say(std::string text) { socket_->SendText(std::move(text)); }
  void SayBinary(std::string bytes) { socket_->SendBinary(std::move(bytes)); }
  bool IsClosed() {
    return bench_->Until([&] { return closed; }, seconds(5));
  }
  std::vector<std::string> got;
  bool closed = false;

 private:
  JobHarness* bench_;
  std::unique_ptr<net::WebSocket> socket_;
};

class Hostile : public ::testing::Test {
 protected:
  Hostile() : bench_(JobOf({ShellRole("worker", 1, "echo fine")})) { bench_.StartCoordinator(); }
  // The job is unaffected by all of it.
  ~Hostile() override {
    bench_.StartAllLaunchers();
    EXPECT_EQ(bench_.RunToVerdict().state, JobState::kSucceeded);
    EXPECT_EQ(bench_.LogOf("worker", 0), "fine\n");
  }
  JobHarness bench_;
};

TEST_F(Hostile, WithoutAProof) {
  const std::string deep(100'000, '[');
  for (const std::string& first :
       {std::string("garbage"), std::string("{}"), std::string("{\"type\":7}"), deep,
        std::string("{\"type\":\"leased\",\"host\":\"h\",\"ports\":[1]}"),
        std::string("{\"type\":\"proof\",\"protocol\":1}"),
        std::string("{\"type\":\"proof\",\"protocol\":2,\"nonce\":\"\",\"hello\":{}}"),
        Message("proof", {{"protocol", 1},
                          {"nonce", RandomHex(32)},
                          {"proof", RandomHex(32)},
                          {"hello", json::object{}}})}) {
    Stranger stranger(&bench_);
    stranger.Say(first);
    EXPECT_TRUE(stranger.IsClosed()) << first.substr(0, 80);
    ASSERT_EQ(stranger.got.size(), 2u);
    EXPECT_THAT(stranger.got[1], HasSubstr("\"type\":\"error\""));
  }
  Stranger binary(&bench_);
  binary.SayBinary(EncodeLogFrame({"worker", 0, 0}, 0, "forged\n"));
  EXPECT_TRUE(binary.IsClosed());
  Stranger huge(&bench_);
  huge.Say(std::string(kMaxMessageUp + 1, ' '));
  EXPECT_TRUE(huge.IsClosed());
}

TEST_F(Hostile, WithTheTokenButNonsense) {
  for (const std::string& second :
       {std::string("garbage"), Message("nonsense"), Message("ended", {{"attempt", -1}}),
        Message("leased", {{"host", ""}, {"ports", json::array{99999}}}),
        Message("log_grew", {{"attempt", 7}, {"bytes", 100}}),  // it was never started
        Message("log_grew", {{"attempt", -1}, {"bytes", "x"}}),
        Message("report", {{"attempt", 0}})}) {
    Stranger stranger(&bench_);
    TaskHello hello;
    hello.role = "worker";
    hello.index = 0;
    hello.instance = "stranger";
    stranger.Prove(ToJson(hello));
    stranger.Say(second);
    EXPECT_TRUE(stranger.IsClosed()) << second;
  }
  Stranger nobody(&bench_);
  nobody.Prove({{"kind", "emperor"}});
  EXPECT_TRUE(nobody.IsClosed());
  Stranger frame(&bench_);
  frame.Prove(ToJson(TaskHello{"worker", 0, 0, "x", 0, 0, -1, false}));
  frame.SayBinary("SL");
  EXPECT_TRUE(frame.IsClosed());
}

TEST_F(Hostile, RawBytesAndHalfRequests) {
  for (const std::string& bytes : {std::string("\0\0\0\xff", 4), std::string("GET / HTTP/1.1\r\n"),
                                   std::string(200'000, 'x')}) {
    bool done = false;
    std::thread client([&, port = bench_.coordinator_->port()] {
      UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
        (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      }
      bench_.loop().Post([&] { done = true; });
    });
    EXPECT_TRUE(bench_.Until([&] { return done; }));
    client.join();
  }
}

}  // namespace
}  // namespace shoal::rendezvous
