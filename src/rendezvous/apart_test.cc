// Coordinators whose controller does not see their directory: what the controller keeps, and how a
// coordinator that has lost everything goes on from it.
#include "rendezvous/apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/id.h"
#include "host/manifest.h"
#include "rendezvous/core_driver.h"
#include "rendezvous/file_fetch.h"
#include "rendezvous/file_giver.h"
#include "rendezvous/journal.h"
#include "rendezvous/keeper.h"
#include "rendezvous/output_fetch.h"
#include "rendezvous/rendezvous_testing.h"
#include "rendezvous/seed.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;
using job::JobState;
using job::TaskState;
using testing::HasSubstr;

std::string TextOf(const fs::path& path) {
  return ReadFile(path, size_t{1} << 30).value_or("(none)");
}

class ApartBench : public Bench {
 public:
  using Bench::Bench;
  void Coordinate(bool first_life = false) {
    CoordinatorOptions options;
    options.apart = true;
    options.first_life = first_life;
    StartCoordinator(options);
  }
  void Control() {
    ClientOptions options;
    options.keep = kept().string();
    StartController(options);
  }
  // The next one finds nothing, as on another host.
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
  ApartBench bench(JobOf({ShellRole("worker", 1, "echo hi")}));
  bench.Coordinate();
  bench.StartRemoteLauncher("worker", 0);
  EXPECT_FALSE(bench.Until([&] { return fs::exists(bench.coordinators("journal")); },
                           std::chrono::milliseconds(300)));
  bench.Control();
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSucceeded);
  EXPECT_EQ(TextOf(bench.kept() / "logs/worker-0.0.log"), "hi\n");
  EXPECT_EQ(bench.LogOf("worker", 0), "hi\n");
  EXPECT_EQ(TextOf(bench.kept() / "journal"), TextOf(bench.coordinators("journal")));
}

TEST(ApartJob, TheFirstCoordinatorWaitsForNobody) {
  ApartBench bench(JobOf({ShellRole("worker", 1, "echo hi")}));
  bench.Coordinate(true);
  bench.StartRemoteLauncher("worker", 0);
  ASSERT_TRUE(bench.Until([&] { return fs::exists(bench.coordinators("logs/worker-0.0.log")); }));
  bench.Control();
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSucceeded);
  EXPECT_EQ(TextOf(bench.kept() / "logs/worker-0.0.log"), "hi\n");
  EXPECT_EQ(bench.LogOf("worker", 0), "hi\n");
  EXPECT_EQ(TextOf(bench.kept() / "journal"), TextOf(bench.coordinators("journal")));
}

// Its engine has counted wrong: it ends, and the next one asks for the journal.
TEST(ApartJob, ACoordinatorThatIsWronglyTheFirstEndsWhenItsControllerComes) {
  ApartBench bench(JobOf({ShellRole("worker", 1, "sleep 1000")}));
  bench.Coordinate(true);
  bench.StartRemoteLauncher("worker", 0);
  bench.Control();
  ASSERT_TRUE(bench.Until([&] { return bench.Count("worker", 0, TaskState::kRunning) == 1; }));
  ASSERT_TRUE(bench.Until([&] { return fs::file_size(bench.kept() / "journal") > 0; }));
  bench.LoseCoordinator();
  bench.Coordinate(true);
  ASSERT_TRUE(bench.Until([&] { return bench.coordinator_end.has_value(); }));
}

TEST(ApartJob, ACoordinatorThatLostEverythingGoesOnFromTheControllersJournal) {
  const TempDir flags = TempDir::Create().value();
  const std::string flag = flags.path().string() + "/go";
  job::Job job =
      JobOf({ShellRole("worker", 1,
                       "echo one; while [ ! -e " + flag + " ]; do sleep 0.01; done; echo two"),
             ShellRole("early", 1, "echo early")});
  job.success.roles = {"worker"};
  ApartBench bench(job);
  bench.Coordinate();
  bench.StartRemoteLauncher("worker", 0);
  bench.StartRemoteLauncher("early", 0);
  bench.Control();
  ASSERT_TRUE(bench.Until([&] {
    return bench.LogOf("worker", 0) == "one\n" && bench.Count("early", 0, TaskState::kEnded) == 1;
  }));
  bench.LoseCoordinator();
  bench.Coordinate();
  ASSERT_TRUE(bench.Until([&] { return bench.client->connected(); }));
  std::ofstream(flag) << "";
  const Verdict verdict = bench.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kSucceeded) << verdict.reason;
  EXPECT_EQ(bench.Count("worker", 0, TaskState::kRunning), 1) << "its program has run on";
  EXPECT_EQ(bench.Count("early", 0, TaskState::kEnded), 1);
  EXPECT_TRUE(bench.logs_contiguous);
  EXPECT_EQ(TextOf(bench.kept() / "logs/worker-0.0.log"), "one\ntwo\n");
  EXPECT_EQ(TextOf(bench.kept() / "logs/early-0.0.log"), "early\n");
}

TEST(ApartJob, OutputsAreWithTheControllerBeforeTheLauncherLeaves) {
  ApartBench bench(JobOf({ShellRole(
      "worker", 1,
      "cd $SHOAL_OUTPUT && mkdir d && head -c 3000000 /dev/zero > d/large && ln -s d l")}));
  bench.Coordinate();
  const fs::path outputs = bench.kept() / "outputs";
  std::optional<Status> finished;
  auto fetch = OutputFetch::Start(&bench.loop(), {bench.Find(), bench.Token(), outputs},
                                  [&](const Status& status) { finished = status; });
  bench.Control();
  ASSERT_TRUE(bench.Until([&] { return bench.client->connected(); }));
  bench.StartRemoteLauncher("worker", 0);
  ASSERT_TRUE(bench.Until([&] { return bench.Count("worker", 0, TaskState::kEnded) == 1; }));
  EXPECT_EQ(TextOf(outputs / "worker-0.0/d/large"), std::string(3'000'000, '\0'));
  EXPECT_EQ(fs::read_symlink(outputs / "worker-0.0/l"), "d");
  fetch->Finish();
  ASSERT_TRUE(bench.Until([&] { return finished.has_value(); }));
  EXPECT_TRUE(finished->ok()) << finished->message();
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSucceeded);
}

TEST(ApartJob, WhoFetchesOutputsLaterIsOfferedAllAndTakesNothingTwice) {
  ApartBench bench(JobOf({ShellRole("worker", 2, "echo $SHOAL_INDEX > $SHOAL_OUTPUT/index")}));
  bench.Coordinate();
  bench.Control();
  bench.StartRemoteLauncher("worker", 0);
  bench.StartRemoteLauncher("worker", 1);
  ASSERT_TRUE(bench.Until([&] { return bench.verdict.has_value(); }));
  const fs::path outputs = bench.kept() / "outputs";
  for (int round = 0; round < 2; ++round) {
    std::optional<Status> finished;
    auto fetch = OutputFetch::Start(&bench.loop(), {bench.Find(), bench.Token(), outputs},
                                    [&](const Status& status) { finished = status; });
    fetch->Finish();
    ASSERT_TRUE(bench.Until([&] { return finished.has_value(); }));
    EXPECT_TRUE(finished->ok()) << finished->message();
    EXPECT_EQ(TextOf(outputs / "worker-1.0/index"), round == 0 ? "1\n" : "mine\n");
    std::ofstream(outputs / "worker-1.0/index") << "mine\n";
  }
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSucceeded);
}

TEST(ApartJob, FilesComeFromTheControllerAndHostsWaitForThem) {
  job::Job job = JobOf({ShellRole("worker", 1, "sleep 60")});
  job.files = "/somewhere";
  ApartBench bench(job);
  const fs::path files = bench.kept() / "files";
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
  bench.Coordinate();
  bench.Control();
  auto giver = FileGiver::Start(&bench.loop(), {bench.Find(), bench.Token(), files});
  ASSERT_TRUE(
      bench.Until([&] { return fs::exists(bench.coordinators("files") / "manifest.json"); }));
  EXPECT_EQ(TextOf(bench.coordinators("files") / "manifest.json"), host::ToText(manifest));
  for (const host::ManifestEntry& entry : manifest.entries)
    EXPECT_EQ(Sha256Hex(TextOf(bench.coordinators("files") / "blobs" / entry.sha256)),
              entry.sha256);
}

// ---- Parts --------------------------------------------------------------------------------------

TEST(Keeper, KeepsTheJournalByteForByteAndTakesNoGap) {
  const TempDir temp = TempDir::Create().value();
  const std::string bytes = JournalHeader() + JournalRecord("a") + JournalRecord("bcd");
  {
    Keeper keeper = Keeper::Open(temp.path()).value();
    EXPECT_EQ(keeper.journal_bytes(), 0);
    EXPECT_TRUE(keeper.Journal(0, bytes.substr(0, 20)).ok());
    EXPECT_TRUE(keeper.Journal(10, bytes.substr(10, 15)).ok()) << "part of it is known";
    EXPECT_TRUE(keeper.Journal(0, bytes.substr(0, 5)).ok()) << "all of it is";
    EXPECT_EQ(keeper.Journal(26, bytes.substr(26)).code(), Code::kDataLoss);
    EXPECT_TRUE(keeper.Journal(25, bytes.substr(25)).ok());
    EXPECT_EQ(keeper.ReadJournal(0, 1000).value(), bytes);
  }
  std::ofstream(temp.path() / "journal", std::ios::app) << "torn";
  EXPECT_EQ(Keeper::Open(temp.path())->journal_bytes(), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(TextOf(temp.path() / "journal"), bytes);
}

TEST(Keeper, LogsGoOnWhereTheyStandAndHaveNamesOfFiles) {
  const TempDir temp = TempDir::Create().value();
  const LogKey key{"worker", 1, 0};
  EXPECT_TRUE(Keeper::Open(temp.path())->Log(key, 0, "one\n").ok());
  Keeper keeper = Keeper::Open(temp.path()).value();
  EXPECT_EQ(keeper.offsets().at(key), 4);
  EXPECT_TRUE(keeper.Log(key, 0, "one\ntwo\n").ok());
  EXPECT_EQ(TextOf(temp.path() / "logs/worker-1.0.log"), "one\ntwo\n");
  for (const char* role : {"../x", "", ".hidden", "a/b"})
    EXPECT_EQ(keeper.Log({role, 0, 0}, 0, "x").code(), Code::kInvalidArgument) << role;
  EXPECT_EQ(keeper.Log({"worker", -1, 0}, 0, "x").code(), Code::kInvalidArgument);
}

TEST(ApartCore, ALauncherThatKnowsMoreThanTheJournalIsRefusedAndLost) {
  Driver d(Make(1, 0));
  d.Join(1, "worker", 0);
  ASSERT_EQ(d.Count(Action::Kind::kStart), 1);
  d.Do(Left{1});
  d.Do(Joined{2, "worker", 0, 0, "i1", 7, 3, true});
  EXPECT_GE(d.Count(Action::Kind::kRefuse), 1);
  EXPECT_FALSE(d.core.TaskOf(2).has_value());
}

TEST(Seed, IsWhatBothSidesNeedAndNoMore) {
  const TempDir temp = TempDir::Create().value();
  const std::string from = (temp.path() / "from").string();
  fs::create_directories(from);
  EXPECT_EQ(MakeSeed(from).status().code(), Code::kNotFound);
  for (const char* name : {"job.json", "token", "id", "work_dir"})
    std::ofstream(fs::path(from) / name) << name;
  const auto seed = MakeSeed(from).value();
  EXPECT_THAT(seed, testing::SizeIs(3));
  // As Kubernetes mounts a secret: read-only links.
  const fs::path mounted = temp.path() / "mounted";
  fs::create_directories(mounted / "..data");
  for (const auto& [name, text] : seed) {
    std::ofstream(mounted / "..data" / name) << text;
    fs::permissions(mounted / "..data" / name, fs::perms::owner_read);
    fs::create_symlink(fs::path("..data") / name, mounted / name);
  }
  const std::string own = (temp.path() / "own/dir").string();
  ASSERT_TRUE(PlantSeed(mounted.string(), own).ok());
  ASSERT_TRUE(PlantSeed(mounted.string(), own).ok()) << "again, of a second life";
  EXPECT_EQ(TextOf(own + "/token"), "token");
  ASSERT_TRUE(PlantCoordinator("coordinator.ns.svc:7000", own).ok());
  EXPECT_EQ(ReadCoordinatorFile(own)->host, "coordinator.ns.svc");
  EXPECT_EQ(ReadCoordinatorFile(own)->port, 7000);
  EXPECT_EQ(PlantCoordinator("nowhere", own).code(), Code::kInvalidArgument);
  EXPECT_EQ(PlantCoordinator("host:0", own).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace shoal::rendezvous
