// No-shared-filesystem mode: what the controller mirrors, and how a coordinator with an empty
// directory goes on from it.
#include "rendezvous/journal/journal_replication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/id.h"
#include "host/files/manifest.h"
#include "rendezvous/bootstrap/bootstrap_files.h"
#include "rendezvous/client/file_uploader.h"
#include "rendezvous/client/journal_mirror.h"
#include "rendezvous/client/output_downloader.h"
#include "rendezvous/integration/job_harness.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/lifecycle/core_driver.h"
#include "rendezvous/transfer/file_fetch.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;
using job::JobState;
using job::TaskState;
using testing::HasSubstr;

std::string TextOf(const fs::path& path) {
  return ReadFile(path, size_t{1} << 30).value_or("(none)");
}

class ApartBench : public JobHarness {
 public:
  using JobHarness::JobHarness;
  void Coordinate(bool first_incarnation = false) {
    CoordinatorOptions options;
    options.no_shared_filesystem = true;
    options.first_incarnation = first_incarnation;
    StartCoordinator(options);
  }
  void Control() {
    CoordinatorClientOptions options;
    options.mirror_dir = kept().string();
    StartController(options);
  }
  // The next coordinator has an empty directory, as on another host.
  void LoseCoordinator() {
    CrashCoordinator();
    for (const char* name : {"journal", "logs", "outputs", "files"})
      fs::remove_all(coordinators(name));
  }
  fs::path coordinators(const std::string& name) const { return fs::path(dir()) / name; }
  fs::path kept() const { return keep_.path() / "job"; }
  std::function<Result<CoordinatorAddress>()> Find() const {
    return [directory = dir()] { return ReadCoordinatorFile(directory); };
  }
  std::string Token() const { return ReadTokenFile(dir()).value(); }

 private:
  TempDir keep_ = TempDir::Create().value();
};

// ---- With real launchers ------------------------------------------------------------------------

TEST(ApartJob, NothingBeginsBeforeItsControllerHasCome) {
  ApartBench harness(JobOf({ShellRole("worker", 1, "echo hi")}));
  harness.Coordinate();
  harness.StartRemoteLauncher("worker", 0);
  EXPECT_FALSE(harness.Until([&] { return fs::exists(harness.coordinators("journal")); },
                             std::chrono::milliseconds(300)));
  harness.Control();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  EXPECT_EQ(TextOf(harness.kept() / "logs/worker-0.0.log"), "hi\n");
  EXPECT_EQ(harness.LogOf("worker", 0), "hi\n");
  EXPECT_EQ(TextOf(harness.kept() / "journal"), TextOf(harness.coordinators("journal")));
}

TEST(ApartJob, TheFirstCoordinatorWaitsForNobody) {
  ApartBench harness(JobOf({ShellRole("worker", 1, "echo hi")}));
  harness.Coordinate(true);
  harness.StartRemoteLauncher("worker", 0);
  ASSERT_TRUE(
      harness.Until([&] { return fs::exists(harness.coordinators("logs/worker-0.0.log")); }));
  harness.Control();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  EXPECT_EQ(TextOf(harness.kept() / "logs/worker-0.0.log"), "hi\n");
  EXPECT_EQ(harness.LogOf("worker", 0), "hi\n");
  EXPECT_EQ(TextOf(harness.kept() / "journal"), TextOf(harness.coordinators("journal")));
}

// The engine wrongly started it as the first coordinator: it ends, and the next one asks for the
// journal.
TEST(ApartJob, ACoordinatorThatIsWronglyTheFirstEndsWhenItsControllerComes) {
  ApartBench harness(JobOf({ShellRole("worker", 1, "sleep 1000")}));
  harness.Coordinate(true);
  harness.StartRemoteLauncher("worker", 0);
  harness.Control();
  ASSERT_TRUE(harness.Until([&] { return harness.Count("worker", 0, TaskState::kRunning) == 1; }));
  ASSERT_TRUE(harness.Until([&] { return fs::file_size(harness.kept() / "journal") > 0; }));
  harness.LoseCoordinator();
  harness.Coordinate(true);
  ASSERT_TRUE(harness.Until([&] { return harness.coordinator_end.has_value(); }));
}

TEST(ApartJob, ACoordinatorThatLostEverythingGoesOnFromTheControllersJournal) {
  const TempDir flags = TempDir::Create().value();
  const std::string flag = flags.path().string() + "/go";
  job::Job job =
      JobOf({ShellRole("worker", 1,
                       "echo one; while [ ! -e " + flag + " ]; do sleep 0.01; done; echo two"),
             ShellRole("early", 1, "echo early")});
  job.success.roles = {"worker"};
  ApartBench harness(job);
  harness.Coordinate();
  harness.StartRemoteLauncher("worker", 0);
  harness.StartRemoteLauncher("early", 0);
  harness.Control();
  ASSERT_TRUE(harness.Until([&] {
    return harness.LogOf("worker", 0) == "one\n" &&
           harness.Count("early", 0, TaskState::kEnded) == 1;
  }));
  harness.LoseCoordinator();
  harness.Coordinate();
  ASSERT_TRUE(harness.Until([&] { return harness.client->connected(); }));
  std::ofstream(flag) << "";
  const Verdict verdict = harness.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kSucceeded) << verdict.reason;
  EXPECT_EQ(harness.Count("worker", 0, TaskState::kRunning), 1) << "its program has run on";
  EXPECT_EQ(harness.Count("early", 0, TaskState::kEnded), 1);
  EXPECT_TRUE(harness.logs_contiguous);
  EXPECT_EQ(TextOf(harness.kept() / "logs/worker-0.0.log"), "one\ntwo\n");
  EXPECT_EQ(TextOf(harness.kept() / "logs/early-0.0.log"), "early\n");
}

TEST(ApartJob, OutputsAreWithTheControllerBeforeTheLauncherLeaves) {
  ApartBench harness(JobOf({ShellRole(
      "worker", 1,
      "cd $SHOAL_OUTPUT && mkdir d && head -c 3000000 /dev/zero > d/large && ln -s d l")}));
  harness.Coordinate();
  const fs::path outputs = harness.kept() / "outputs";
  std::optional<Status> finished;
  auto fetch = OutputDownloader::Start(&harness.loop(), {harness.Find(), harness.Token(), outputs},
                                       [&](const Status& status) { finished = status; });
  harness.Control();
  ASSERT_TRUE(harness.Until([&] { return harness.client->connected(); }));
  harness.StartRemoteLauncher("worker", 0);
  ASSERT_TRUE(harness.Until([&] { return harness.Count("worker", 0, TaskState::kEnded) == 1; }));
  EXPECT_EQ(TextOf(outputs / "worker-0.0/d/large"), std::string(3'000'000, '\0'));
  EXPECT_EQ(fs::read_symlink(outputs / "worker-0.0/l"), "d");
  fetch->Finish();
  ASSERT_TRUE(harness.Until([&] { return finished.has_value(); }));
  EXPECT_TRUE(finished->ok()) << finished->message();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
}

TEST(ApartJob, WhoFetchesOutputsLaterIsOfferedAllAndTakesNothingTwice) {
  ApartBench harness(JobOf({ShellRole("worker", 2, "echo $SHOAL_INDEX > $SHOAL_OUTPUT/index")}));
  harness.Coordinate();
  harness.Control();
  harness.StartRemoteLauncher("worker", 0);
  harness.StartRemoteLauncher("worker", 1);
  ASSERT_TRUE(harness.Until([&] { return harness.verdict.has_value(); }));
  const fs::path outputs = harness.kept() / "outputs";
  for (int round = 0; round < 2; ++round) {
    std::optional<Status> finished;
    auto fetch =
        OutputDownloader::Start(&harness.loop(), {harness.Find(), harness.Token(), outputs},
                                [&](const Status& status) { finished = status; });
    fetch->Finish();
    ASSERT_TRUE(harness.Until([&] { return finished.has_value(); }));
    EXPECT_TRUE(finished->ok()) << finished->message();
    EXPECT_EQ(TextOf(outputs / "worker-1.0/index"), round == 0 ? "1\n" : "mine\n");
    std::ofstream(outputs / "worker-1.0/index") << "mine\n";
  }
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
}

TEST(ApartJob, FilesComeFromTheControllerAndHostsWaitForThem) {
  job::Job job = JobOf({ShellRole("worker", 1, "sleep 60")});
  job.files = "/somewhere";
  ApartBench harness(job);
  const fs::path files = harness.kept() / "files";
  fs::create_directories(files / "blobs");
  host::Manifest manifest;
  for (int i = 0; i < 100; ++i) {
    const std::string text(static_cast<size_t>(i) * 10'000, static_cast<char>('a' + i % 26));
    const std::string sha = Sha256Hex(text);
    std::ofstream(files / "blobs" / sha) << text;
    manifest.entries.push_back({});
    host::ManifestEntry& entry = manifest.entries.back();
    entry.path = "f" + std::to_string(1000 + i);
    entry.size = static_cast<int64_t>(text.size());
    entry.sha256 = sha;
  }
  std::ofstream(files / "manifest.json") << host::ToText(manifest);
  harness.Coordinate();
  harness.Control();
  auto giver = FileUploader::Start(&harness.loop(), {harness.Find(), harness.Token(), files});
  ASSERT_TRUE(
      harness.Until([&] { return fs::exists(harness.coordinators("files") / "manifest.json"); }));
  EXPECT_EQ(TextOf(harness.coordinators("files") / "manifest.json"), host::ToText(manifest));
  for (const host::ManifestEntry& entry : manifest.entries)
    EXPECT_EQ(Sha256Hex(TextOf(harness.coordinators("files") / "blobs" / entry.sha256)),
              entry.sha256);
}

// ---- Parts --------------------------------------------------------------------------------------

TEST(JournalMirror, KeepsTheJournalByteForByteAndTakesNoGap) {
  const TempDir temp = TempDir::Create().value();
  const std::string bytes =
      EncodeJournalHeader() + EncodeJournalRecord("a") + EncodeJournalRecord("bcd");
  {
    JournalMirror mirror = JournalMirror::Open(temp.path()).value();
    EXPECT_EQ(mirror.journal_bytes(), 0);
    EXPECT_TRUE(mirror.AppendJournal(0, bytes.substr(0, 20)).ok());
    EXPECT_TRUE(mirror.AppendJournal(10, bytes.substr(10, 15)).ok()) << "part of it is known";
    EXPECT_TRUE(mirror.AppendJournal(0, bytes.substr(0, 5)).ok()) << "all of it is";
    EXPECT_EQ(mirror.AppendJournal(26, bytes.substr(26)).code(), Code::kDataLoss);
    EXPECT_TRUE(mirror.AppendJournal(25, bytes.substr(25)).ok());
    EXPECT_EQ(mirror.ReadJournal(0, 1000).value(), bytes);
  }
  std::ofstream(temp.path() / "journal", std::ios::app) << "torn";
  EXPECT_EQ(JournalMirror::Open(temp.path())->journal_bytes(), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(TextOf(temp.path() / "journal"), bytes);
}

TEST(JournalMirror, LogsGoOnWhereTheyStandAndHaveNamesOfFiles) {
  const TempDir temp = TempDir::Create().value();
  const LogKey key{"worker", 1, 0};
  EXPECT_TRUE(JournalMirror::Open(temp.path())->AppendLog(key, 0, "one\n").ok());
  JournalMirror mirror = JournalMirror::Open(temp.path()).value();
  EXPECT_EQ(mirror.offsets().at(key), 4);
  EXPECT_TRUE(mirror.AppendLog(key, 0, "one\ntwo\n").ok());
  EXPECT_EQ(TextOf(temp.path() / "logs/worker-1.0.log"), "one\ntwo\n");
  for (const char* role : {"../x", "", ".hidden", "a/b"})
    EXPECT_EQ(mirror.AppendLog({role, 0, 0}, 0, "x").code(), Code::kInvalidArgument) << role;
  EXPECT_EQ(mirror.AppendLog({"worker", -1, 0}, 0, "x").code(), Code::kInvalidArgument);
}

TEST(ApartCore, ALauncherThatKnowsMoreThanTheJournalIsRefusedAndLost) {
  CoreDriver d(Make(1, 0));
  d.Join(1, "worker", 0);
  ASSERT_EQ(d.Count(Action::Kind::kStart), 1);
  d.Do(LauncherDisconnected{1});
  d.Do(LauncherJoined{2, "worker", 0, 0, "i1", 7, 3, true});
  EXPECT_GE(d.Count(Action::Kind::kRefuse), 1);
  EXPECT_FALSE(d.core.TaskOf(2).has_value());
}

TEST(Seed, IsWhatBothSidesNeedAndNoMore) {
  const TempDir temp = TempDir::Create().value();
  const std::string from = (temp.path() / "from").string();
  fs::create_directories(from);
  EXPECT_EQ(ReadBootstrapFiles(from).status().code(), Code::kNotFound);
  for (const char* name : {"job.json", "token", "id", "work_dir"})
    std::ofstream(fs::path(from) / name) << name;
  const auto seed = ReadBootstrapFiles(from).value();
  EXPECT_THAT(seed, testing::SizeIs(3));
  // As Kubernetes mounts a secret: read-only symbolic links.
  const fs::path mounted = temp.path() / "mounted";
  fs::create_directories(mounted / "..data");
  for (const auto& [name, text] : seed) {
    std::ofstream(mounted / "..data" / name) << text;
    fs::permissions(mounted / "..data" / name, fs::perms::owner_read);
    fs::create_symlink(fs::path("..data") / name, mounted / name);
  }
  const std::string own = (temp.path() / "own/dir").string();
  ASSERT_TRUE(InstallBootstrapFiles(mounted.string(), own).ok());
  ASSERT_TRUE(InstallBootstrapFiles(mounted.string(), own).ok()) << "again, of a second life";
  EXPECT_EQ(TextOf(own + "/token"), "token");
  ASSERT_TRUE(InstallCoordinatorAddress("coordinator.ns.svc:7000", own).ok());
  EXPECT_EQ(ReadCoordinatorFile(own)->host, "coordinator.ns.svc");
  EXPECT_EQ(ReadCoordinatorFile(own)->port, 7000);
  EXPECT_EQ(InstallCoordinatorAddress("nowhere", own).code(), Code::kInvalidArgument);
  EXPECT_EQ(InstallCoordinatorAddress("host:0", own).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace shoal::rendezvous
