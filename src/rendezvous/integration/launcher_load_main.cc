// The launcher load test: many simulated launchers in one process, for script/bench rendezvous.
// Each joins the job of DIR, leases a port, waits for its start message, and ends well. Reading the
// description is left out, as real launchers read it on machines of their own.
//
//   rendezvous_launcher_load coordinator TASKS DIR   creates a job in DIR and runs its coordinator
//   rendezvous_launcher_load launchers TASKS DIR     prints {"start_seconds":…,"end_seconds":…,…}
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "job/execution/job_dir.h"
#include "job/spec/json.h"
#include "net/event_loop.h"
#include "net/websocket.h"
#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/protocol/coordinator_connection.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

constexpr int kDialsAtOnce = 256;  // the listen backlog is bounded

Status Coordinate(int tasks, const std::string& dir) {
  job::Job job;
  job.name = "crowd";
  job.roles.resize(1);
  job.roles[0].name = "worker";
  job.roles[0].replicas = tasks;
  job.roles[0].command = {"true"};
  job.roles[0].ports = {{"grpc", false}};
  job.success.roles = {"worker"};
  job.on_controller_loss = job::OnControllerLoss::kKeep;
  TRY(WriteFileAtomically(job::JobDir(dir).job(), job::ToJsonText(job), 0600, false));
  TRY(WriteFileAtomically(job::JobDir(dir).token(), NewToken(), 0600, false));
  TRY(WriteFileAtomically(job::JobDir(dir).id(), NewJobId("crowd") + "\n", 0600, false));
  CoordinatorOptions options;
  options.job_dir = dir;
  return RunCoordinator(std::move(options));
}

// Resident bytes of a process; 0: unknown.
int64_t ResidentBytes(int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

struct Member {
  std::unique_ptr<net::Connecting> connecting;
  std::unique_ptr<net::WebSocket> socket;
  std::string server_nonce;
  bool started = false;
};

class LauncherLoadTest {
 public:
  LauncherLoadTest(net::Loop* loop, int tasks, CoordinatorAddress at, std::string token,
                   int64_t pid)
      : loop_(loop),
        at_(std::move(at)),
        token_(std::move(token)),
        pid_(pid),
        members_(static_cast<size_t>(tasks)) {}

  void Begin() {
    rss_before_ = ResidentBytes(pid_);
    began_ = RealClock::Get()->Now();
    while (next_ < std::min<size_t>(kDialsAtOnce, members_.size())) Dial(next_++);
  }

 private:
  void Dial(size_t index) {
    net::ConnectOptions to;
    to.host = at_.host;
    to.port = at_.port;
    to.path = kPath;
    to.limits.message_bytes = kMaxMessageDown;
    to.limits.handshake = std::chrono::seconds(30);
    members_[index].connecting = net::Connect(loop_, std::move(to), [this, index](auto socket) {
      if (!socket.ok()) return Fail(socket.status().message());
      members_[index].connecting.reset();
      members_[index].socket = std::move(socket).value();
      members_[index].socket->Start(
          [this, index](std::string_view bytes, bool text) { Received(index, bytes, text); },
          [this](const Status& why) { Fail("a connection was closed: " + why.message()); });
    });
  }

  static void Fail(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::_Exit(1);
  }

  void Received(size_t index, std::string_view bytes, bool text) {
    if (!text) {  // the description
      described_bytes_ += bytes.size();
      return;
    }
    std::string type;
    auto message = ParseMessage(bytes, &type);
    if (!message.ok()) return Fail(message.status().message());
    Member& member = members_[index];
    if (type == "challenge") return Prove(index, *message);
    if (type == "accepted") return AcceptedOne();
    if (type == "welcome") {
      LeasedMessage leased{"127.0.0.1", {static_cast<uint16_t>(10'000 + index % 50'000)}};
      member.socket->SendText(Message("leased", ToJson(leased)));
    } else if (type == "start" && !std::exchange(member.started, true)) {
      if (++started_ == members_.size()) AllStarted();
    } else if (type == "release" && ++released_ == members_.size()) {
      Report();
    } else if (type == "error" || type == "refuse") {
      Fail(GetStringOr(*message, "text", type));
    }
  }

  void Prove(size_t index, const json::object& challenge) {
    const std::string server = GetStringOr(challenge, "nonce", "");
    const std::string client = RandomHex(32);
    TaskHello hello;
    hello.role = "worker";
    hello.index = static_cast<int>(index);
    hello.instance = RandomHex(8);
    members_[index].socket->SendText(
        Message("proof", {{"protocol", kProtocolVersion},
                          {"nonce", client},
                          {"proof", ClientProof(token_, server, client)},
                          {"hello", ToJson(hello)}}));
  }

  void AcceptedOne() {
    if (next_ < members_.size()) Dial(next_++);
  }

  void AllStarted() {
    started_at_ = RealClock::Get()->Now();
    rss_ = ResidentBytes(pid_);
    EndedMessage ended;
    ended.end = job::Exited(0);
    const auto text = std::make_shared<const std::string>(Message("ended", ToJson(ended)));
    for (Member& member : members_) member.socket->SendShared(text, true);
  }

  void Report() {
    const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
    std::printf(
        "{\"tasks\":%zu,\"start_seconds\":%.4f,\"end_seconds\":%.4f,\"rss_before\":%lld,"
        "\"rss_bytes\":%lld,\"described_bytes\":%zu}\n",
        members_.size(), seconds(started_at_ - began_),
        seconds(RealClock::Get()->Now() - started_at_), static_cast<long long>(rss_before_),
        static_cast<long long>(rss_), described_bytes_);
    std::fflush(stdout);
    std::_Exit(0);
  }

  net::Loop* const loop_;
  const CoordinatorAddress at_;
  const std::string token_;
  const int64_t pid_;
  std::vector<Member> members_;
  size_t next_ = 0;
  size_t started_ = 0;
  size_t released_ = 0;
  size_t described_bytes_ = 0;
  int64_t rss_before_ = 0;
  int64_t rss_ = 0;
  TimePoint began_;
  TimePoint started_at_;
};

Status Run(int tasks, const std::string& dir) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  TRY_ASSIGN(const std::string token, ReadTokenFile(dir));
  TRY_ASSIGN(const CoordinatorAddress at, ReadCoordinatorFile(dir));
  TRY_ASSIGN(const std::string text, ReadFile(job::JobDir(dir).coordinator(), 65'536));
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  net::Loop loop;
  LauncherLoadTest crowd(&loop, tasks, at, token, GetIntOr(object, "pid", 0));
  crowd.Begin();
  loop.Run();
  return Status::Ok();
}

}  // namespace
}  // namespace shoal::rendezvous

int main(int argc, char** argv) {
  using namespace shoal::rendezvous;  // NOLINT: a program of one function
  const std::string mode = argc == 4 ? argv[1] : "";
  const int tasks = argc == 4 ? std::atoi(argv[2]) : 0;
  if (tasks < 1 || (mode != "coordinator" && mode != "launchers")) {
    std::fprintf(stderr, "usage: %s coordinator|launchers TASKS DIR\n", argv[0]);
    return 2;
  }
  const shoal::Status status =
      mode == "coordinator" ? Coordinate(tasks, argv[3]) : Run(tasks, argv[3]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
