// Checkpoints that hold only what changed: chains of them restore what a whole one would, stay
// short, and no damage, full disk or kill makes a server come back with anything but a cut.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/bytes.h"
#include "base/fault_injection.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "ps/testing/test_checkpoint.h"
#include "ps/testing/test_cluster.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

using std::chrono::seconds;

constexpr size_t kRows = 4000;

ClusterOptions Options(int threads = 1) {
  ClusterOptions options;
  options.transport = TransportKind::kInProcess;
  options.workers = 1;
  options.threads = threads;
  options.checkpoints = true;
  return options;
}

void Push(Client* client, const TableRef& table, Key first, size_t n, float value = 1) {
  std::vector<Key> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = first + i;
  const std::vector<float> deltas(n * table.dim, value);
  const auto ticket = client->Push(table, keys, ConstRows(deltas.data(), table.dim));
  ASSERT_OK(ticket);
  ASSERT_OK(client->Wait(*ticket));
}

std::vector<float> AllRows(Client* client, const TableRef& table) {
  std::vector<Key> keys(kRows);
  for (size_t i = 0; i < kRows; ++i) keys[i] = i;
  std::vector<float> rows(kRows * table.dim, -1);
  const auto ticket = client->Pull(table, keys, Rows(rows.data(), table.dim));
  EXPECT_TRUE(ticket.ok() && client->Wait(*ticket).ok());
  return rows;
}

Manifest ManifestOf(const Cluster& cluster, int64_t id) {
  auto manifest = ReadManifest(cluster.checkpoint_dir(), id);
  EXPECT_TRUE(manifest.ok()) << manifest.status().ToString();
  return manifest.ok() ? std::move(manifest).value() : Manifest{};
}

// Two tables, all of whose rows have been pushed to, and a whole checkpoint of them, number 0.
struct Trained {
  explicit Trained(ClusterOptions options = Options()) : cluster(options) {
    client = cluster.Connect(0);
    admin = cluster.ConnectAdmin();
    auto adam = SparseSpec("sparse", 3);
    adam.optimizer.kind = OptimizerKind::kAdam;
    dense = client->CreateTable(DenseSpec("dense", kRows, 4)).value();
    sparse = client->CreateTable(adam).value();
    Push(client.get(), dense, 0, kRows);
    Push(client.get(), sparse, 0, kRows);
    Take();
  }
  int64_t Take() {
    const auto info = admin->Checkpoint(seconds(60));
    EXPECT_TRUE(info.ok()) << info.status().ToString();
    bytes = info.ok() ? info->bytes : 0;
    return info.ok() ? info->id : -1;
  }
  std::vector<float> Look() {
    auto rows = AllRows(client.get(), dense);
    const auto more = AllRows(client.get(), sparse);
    rows.insert(rows.end(), more.begin(), more.end());
    return rows;
  }
  // All servers anew; returns the checkpoint that they came back from.
  int64_t Restart(int servers = 2) {
    client.reset();
    admin.reset();
    cluster.Resize(servers);
    for (int i = 0; i < servers; ++i) cluster.StartServer(i);
    cluster.members.Shrink(static_cast<size_t>(servers));
    client = cluster.Connect(0);
    admin = cluster.ConnectAdmin();
    const auto spec = DenseSpec("dense", kRows, 4);
    dense = client->CreateTable(spec).value();
    return cluster.server(0).restored_checkpoint();
  }
  std::filesystem::path FileOf(int64_t id, int server = 0) const {
    return CheckpointPath(cluster.checkpoint_dir(), id) / CheckpointFileName(server);
  }

  Cluster cluster;
  std::unique_ptr<Client> client;
  std::unique_ptr<Admin> admin;
  TableRef dense, sparse;
  uint64_t bytes = 0;
};

void FlipByte(const std::filesystem::path& path, size_t at, char bits = 1) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<long>(at));
  const char was = static_cast<char>(file.get());
  file.seekp(static_cast<long>(at));
  file.put(static_cast<char>(was ^ bits));
}

TEST(PsChain, HoldsWhatChangedAndRestoresWithAnyNumberOfServersAndThreads) {
  Trained job(Options(2));
  const uint64_t whole = job.bytes;
  for (Key key = 0; key < 10; ++key) {
    Push(job.client.get(), job.dense, key * 7, 20);
    Push(job.client.get(), job.sparse, kRows - 100 - key * 3, 20);
    EXPECT_EQ(job.Take(), static_cast<int64_t>(key) + 1);
    EXPECT_LT(job.bytes, whole / 20);
    for (const auto& file : ManifestOf(job.cluster, static_cast<int64_t>(key) + 1).files) {
      EXPECT_EQ(file.base, static_cast<int64_t>(key));
    }
  }
  const auto want = job.Look();
  Push(job.client.get(), job.dense, 0, kRows);  // behind the last cut
  for (const int servers : {2, 1, 3}) {
    for (const int threads : {1, 3}) {
      job.cluster.SetThreads(threads);
      EXPECT_EQ(job.Restart(servers), 10);
      EXPECT_EQ(job.Look(), want) << servers << " servers of " << threads << " threads";
    }
  }
  // Whoever came back begins with a whole file, and continues that.
  EXPECT_EQ(job.Take(), 11);
  EXPECT_GE(job.bytes, whole);
  Push(job.client.get(), job.dense, 5, 1);
  EXPECT_EQ(job.Take(), 12);
  EXPECT_LT(job.bytes, whole / 20);
}

TEST(PsChain, StaysShortAndGoesWhenNothingStandsOnIt) {
  Trained job;
  for (int64_t id = 1; id <= 40; ++id) {
    Push(job.client.get(), job.dense, static_cast<Key>(id), 3);
    ASSERT_EQ(job.Take(), id);
    // 15 deltas follow a whole one.
    EXPECT_EQ(ManifestOf(job.cluster, id).files[0].base, id % 16 == 0 ? -1 : id - 1);
  }
  // Number 40 stands on 32 to 39; whatever happens to those, 31 on 16 to 30 is untouched.
  const auto there = ListCheckpoints(job.cluster.checkpoint_dir()).value();
  EXPECT_EQ(there.front(), 16);
  EXPECT_EQ(there.size(), 25u);
  const auto want = job.Look();
  EXPECT_EQ(job.Restart(), 40);
  EXPECT_EQ(job.Look(), want);
}

TEST(PsChain, IsBegunAnewWhereMuchChanged) {
  Trained job;
  const uint64_t whole = job.bytes;
  Push(job.client.get(), job.dense, 0, kRows / 4);
  Push(job.client.get(), job.sparse, 0, kRows / 4);
  EXPECT_EQ(job.Take(), 1);
  EXPECT_LT(job.bytes, whole / 3);
  Push(job.client.get(), job.dense, 0, kRows / 2);
  Push(job.client.get(), job.sparse, 0, kRows / 2);
  EXPECT_EQ(job.Take(), 2);
  EXPECT_EQ(ManifestOf(job.cluster, 2).files[0].base, -1);  // quarter and half exceed half
}

TEST(PsChain, BlobsAreWrittenOnceAndStayDeleted) {
  Trained job;
  ASSERT_OK(job.client->PutBlob("stays", std::string(40'000, 's')));
  ASSERT_OK(job.client->PutBlob("goes", "soon"));
  ASSERT_OK(job.client->PutBlob("changes", "old"));
  job.Take();
  EXPECT_GT(job.bytes, 40'000u);
  ASSERT_OK(job.client->DeleteBlob("goes"));
  ASSERT_OK(job.client->PutBlob("changes", "new"));
  job.Take();
  EXPECT_LT(job.bytes, 10'000u);
  EXPECT_EQ(job.Restart(3), 2);
  EXPECT_EQ(job.client->GetBlob("stays").value_or(""), std::string(40'000, 's'));
  EXPECT_EQ(job.client->GetBlob("changes").value_or(""), "new");
  EXPECT_EQ(job.client->GetBlob("goes").status().code(), Code::kNotFound);
}

TEST(PsChain, WhatACheckpointThatFailedHeldComesWithTheNextOne) {
  Trained job;
  for (const char* fault :
       {"ps.checkpoint.write=ENOSPC@3", "ps.checkpoint.commit=EIO@1", "file.rename=EIO@2"}) {
    const Key key = fault[4] == 'c' ? 700 : 900;
    Push(job.client.get(), job.dense, key, 5);
    ASSERT_OK(SetFaults(fault));
    EXPECT_FALSE(job.admin->Checkpoint(seconds(60)).ok()) << fault;
    ASSERT_OK(SetFaults(""));
    Push(job.client.get(), job.dense, key + 50, 5);
    const int64_t id = job.Take();
    EXPECT_LT(job.bytes, 10'000u);
    const auto want = job.Look();
    EXPECT_EQ(NewestIntact(job.cluster.checkpoint_dir()).value().checkpoint, id);
    Push(job.client.get(), job.dense, key, 1);
    const CheckpointSum sum = SumCheckpoint(job.cluster.checkpoint_dir(), id);
    double live = 0;
    for (size_t i = 0; i < kRows * 4; ++i) live += want[i];
    double saved = 0;
    for (const auto& [place, row] : sum.by_table.at("dense")) saved += row.first;
    EXPECT_EQ(saved, live) << fault;
  }
}

TEST(PsChain, ADamagedLinkIsPassedOverAndNotCountedAsKept) {
  Trained job;
  Push(job.client.get(), job.dense, 10, 5);
  ASSERT_EQ(job.Take(), 1);
  const auto want = job.Look();
  for (int64_t id = 2; id <= 4; ++id) {
    Push(job.client.get(), job.dense, 10, 5);
    ASSERT_EQ(job.Take(), id);
  }
  FlipByte(job.FileOf(2, 1), 60);
  EXPECT_EQ(job.Restart(), 1);
  EXPECT_EQ(job.cluster.server(1).restored_checkpoint(), 1);
  EXPECT_EQ(job.Look(), want);
  // 2 to 4 are worth nothing: beside the new one, 1 and its base stay.
  ASSERT_EQ(job.Take(), 5);
  EXPECT_EQ(ListCheckpoints(job.cluster.checkpoint_dir()).value(), (std::vector<int64_t>{0, 1, 5}));
  FlipByte(job.FileOf(5), 60);
  EXPECT_EQ(job.Restart(), 1);
}

// Two of those that are kept share no file: the loss of a base that many stand on is not the end.
TEST(PsChain, ADamagedBaseLeavesAnOlderChain) {
  Trained job;
  int64_t id = 0;
  while (id < 20) {
    Push(job.client.get(), job.dense, 1, 1);
    id = job.Take();
  }
  FlipByte(job.FileOf(16), 200);
  EXPECT_EQ(job.Restart(), 15);
}

// As a later version of this program would write the manifest.
void WriteLaterFormat(const std::filesystem::path& manifest) {
  json::object object = ParseJsonObject(ReadFile(manifest, 1 << 20).value()).value();
  object["format"] = 3;
  object["news"] = "unknown here";
  object.erase("crc32c");
  const std::string text = ToText(object);
  object["crc32c"] = Crc32c(text.data(), text.size());
  ASSERT_OK(WriteFileAtomically(manifest, ToText(object), 0600));
}

// An older one must not be restored in its place, and the next commit must not remove it.
TEST(PsChain, ACheckpointOfALaterVersionIsNotTakenForDamage) {
  Trained job;
  ASSERT_EQ(job.Take(), 1);
  const auto& root = job.cluster.checkpoint_dir();
  ASSERT_NO_FATAL_FAILURE(WriteLaterFormat(CheckpointPath(root, 1) / "manifest.json"));
  std::set<int64_t> damaged;
  const Status later = NewestIntact(root, &damaged).status();
  EXPECT_EQ(later.code(), Code::kUnimplemented) << later.message();
  EXPECT_NE(later.message().find("start a newer one"), std::string::npos) << later.message();
  EXPECT_TRUE(damaged.empty());
  // A manifest whose byte was flipped says the same, but not its checksum.
  const auto path = CheckpointPath(root, 0) / "manifest.json";
  std::string flipped = ReadFile(path, 1 << 20).value();
  flipped.replace(flipped.find("\"format\": 2"), 11, "\"format\": 3");
  ASSERT_OK(WriteFileAtomically(path, flipped, 0600));
  EXPECT_EQ(ReadManifest(root, 0).status().code(), Code::kDataLoss);
}

TEST(PsChain, AFileOfALaterVersionIsNotTakenForDamage) {
  std::string head(
      "SHOALPSC\3\0\0\0\0\0\0\0"
      "\10\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377\0\0\0\0",
      36);
  CheckpointSum sum;
  EXPECT_EQ(ReadCheckpointBytes(head + "none", 8, &sum).code(), Code::kDataLoss);
  ByteWriter(&head).Put(Crc32c(head.data(), head.size()));
  const Status later = ReadCheckpointBytes(head + "records of another kind", 8, &sum);
  EXPECT_EQ(later.code(), Code::kUnimplemented) << later.message();
}

// The example of docs/formats/checkpoint.md.
TEST(PsChain, BytesAreAsDocumented) {
  auto dir = TempDir::Create().value();
  const auto path = dir.path() / "server-0.ckpt";
  {
    auto writer = CheckpointWriter::Create(path, {8, 7, 0x927f1ea9}).value();
    const float row[] = {0.25f, 0.0f};
    const Key key = 0;
    ASSERT_OK(writer.Table(DenseSpec("t", 4, 2)));
    ASSERT_OK(writer.Rows(TableIdOf("t"), 2, {&key, 1}, row));
    ASSERT_OK(writer.BlobNames({"v"}));
    ASSERT_OK(writer.Commit());
    EXPECT_EQ(writer.crc(), 0xad471490u);
    EXPECT_EQ(writer.bytes(), 193u);
  }
  const std::string bytes = ReadFile(path, 1000).value();
  EXPECT_EQ(bytes.substr(0, 44), std::string("SHOALPSC\2\0\0\0\0\0\0\0"
                                             "\10\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"
                                             "\xa9\x1e\x7f\x92\x24\xe0\xff\x0e\1\0\0\0",
                                             44));
  // What the version before wrote is read, too: its head ends behind the number.
  const std::string old = std::string("SHOALPSC\1\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0", 24);
  CheckpointSum sum;
  EXPECT_FALSE(ReadCheckpointBytes(old + bytes.substr(40), 8, &sum).ok());  // names without a base
  auto writer = CheckpointWriter::Create(path, {8}).value();
  ASSERT_OK(writer.Progress(0, "3"));
  ASSERT_OK(writer.Commit());
  ASSERT_OK(ReadCheckpointBytes(old + ReadFile(path, 1000).value().substr(40), 8, &sum));
  EXPECT_EQ(sum.by_worker.at(0), 3);
  EXPECT_FALSE(ReadCheckpointBytes(old.substr(0, 8) + '\3' + bytes.substr(9), 8, &sum).ok());
  EXPECT_FALSE(ReadCheckpointBytes(bytes + "x", 8, &sum).ok());
}

// No warning for each of some thousand damages.
struct Quiet {
  Quiet() { SetLogLevel(LogLevel::kError); }
  ~Quiet() { SetLogLevel(was); }
  const LogLevel was = GetLogLevel();
};

TEST(PsChain, EveryByteIsChecked) {
  const Quiet quiet;
  const auto small = SparseSpec("small", 1);
  // A job of its own with as few bytes as there can be.
  ClusterOptions options = Options();
  options.servers = 1;
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  auto admin = cluster.ConnectAdmin();
  const auto table = client->CreateTable(small).value();
  ASSERT_OK(client->PutBlob("b", "blob"));
  Push(client.get(), table, 0, 40);
  ASSERT_OK(admin->Checkpoint());
  Push(client.get(), table, 3, 1);
  ASSERT_OK(client->SetProgress("half"));
  const auto info = admin->Checkpoint();
  ASSERT_OK(info);
  const auto root = cluster.checkpoint_dir();
  ASSERT_EQ(ManifestOf(cluster, 1).files[0].base, 0);
  const std::string sound = EncodeManifest(NewestIntact(root).value());
  for (const char* name : {"checkpoint-0/server-0.ckpt", "checkpoint-1/server-0.ckpt",
                           "checkpoint-0/manifest.json", "checkpoint-1/manifest.json"}) {
    const size_t bytes = std::filesystem::file_size(root / name);
    ASSERT_LT(bytes, 2000u) << name;
    for (size_t at = 0; at < bytes; ++at) {
      for (const char bits : {char{1}, char{8}, char{-128}}) {
        FlipByte(root / name, at, bits);
        const auto found = NewestIntact(root);
        // Spaces between a manifest's fields say nothing.
        if (found.ok() && found->checkpoint == 1) {
          EXPECT_EQ(EncodeManifest(*found), sound) << name << " byte " << at << " bits " << +bits;
          EXPECT_NE(name[13], 's') << name << " byte " << at;
        }
        FlipByte(root / name, at, bits);
      }
    }
  }
  EXPECT_EQ(NewestIntact(root).value().checkpoint, 1);
}

// --- kill -9 at any moment ---------------------------------------------------------------------

constexpr Key kKilledRows = 3000;
constexpr int kTaken = 30;  // checkpoints, if nobody kills it

// Two servers and one worker that counts its pushes; tells descriptor 3 of every checkpoint.
class Killed {
 public:
  Killed(const std::filesystem::path& root, uint32_t seed) : random_(seed) {
    auto hub = std::make_shared<InProcessHub>();
    for (int i = 0; i < 2; ++i) {
      ServerOptions options;
      options.index = i;
      options.servers = 2;
      options.workers = 1;
      options.token = Cluster::kToken;
      options.listen_host = "";
      options.hub = hub;
      options.inproc_name = "server-" + std::to_string(i);
      options.threads = 1 + static_cast<int>(seed % 3);
      options.shards = 16;
      options.checkpoint_dir = root;
      options.checkpoint_deltas = 4;
      servers_.push_back(Server::Start(options).value());
      members_.Set(static_cast<size_t>(i), servers_.back()->address());
    }
    ClientOptions mine;
    mine.index = 0;
    mine.token = Cluster::kToken;
    mine.hub = hub;
    client_ = Client::Connect(mine, &members_).value();
    admin_ = Admin::Connect(mine, &members_).value();
    table_ = client_->CreateTable(DenseSpec("t", kKilledRows, 4)).value();
    pushed_ = std::stoll(client_->GetProgress(0).value_or("0"));
  }
  // What came back is a cut.
  bool Consistent() {
    std::vector<Key> keys(kKilledRows);
    for (Key key = 0; key < kKilledRows; ++key) keys[key] = key;
    std::vector<float> rows(kKilledRows * 4);
    const auto ticket = client_->Pull(table_, keys, shoal::ps::Rows(rows.data(), 4));
    if (!ticket.ok() || !client_->Wait(*ticket).ok()) return false;
    double sum = 0;
    for (const float value : rows) sum += value;
    return sum == static_cast<double>(pushed_) * 4;
  }
  void Train() {
    for (int taken = 0; taken < kTaken; ++taken) {
      std::vector<Key> keys(40);
      for (Key& key : keys) key = random_() % kKilledRows;
      const std::vector<float> ones(keys.size() * 4, 1.0f);
      {
        Client::IssueScope scope(*client_);
        (void)client_->Push(table_, keys, ConstRows(ones.data(), 4)).value();
        pushed_ += static_cast<int64_t>(keys.size());
        SHOAL_CHECK(client_->SetProgress(std::to_string(pushed_)).ok());
      }
      SHOAL_CHECK(client_->Flush().ok());
      const int64_t id = admin_->Checkpoint(seconds(60)).value().id;
      SHOAL_CHECK(::write(3, &id, sizeof id) == sizeof id);
    }
  }

 private:
  std::mt19937 random_;
  FixedMembers members_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Admin> admin_;
  TableRef table_;
  int64_t pushed_ = 0;
};

// Not a test: what PsKill starts as a process of its own.
TEST(PsKillChild, DISABLED_Train) {
  const char* root = std::getenv("SHOAL_TEST_ROOT");
  if (root == nullptr) GTEST_SKIP() << "PsKill starts it";
  Killed killed(root, static_cast<uint32_t>(std::atoi(std::getenv("SHOAL_TEST_SEED"))));
  ASSERT_TRUE(killed.Consistent());
  killed.Train();
}

struct Child {
  pid_t pid = -1;
  UniqueFd told;
};

Child StartChild(const std::filesystem::path& root, uint32_t seed, const std::string& faults) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  std::string filter = "--gtest_filter=PsKillChild.*", all = "--gtest_also_run_disabled_tests";
  std::string self = "/proc/self/exe";
  std::vector<std::string> settings = {"SHOAL_TEST_ROOT=" + root.string(),
                                       "SHOAL_TEST_SEED=" + std::to_string(seed),
                                       "SHOAL_FAULTS=" + faults};
  char* args[] = {self.data(), filter.data(), all.data(), nullptr};
  char* env[] = {settings[0].data(), settings[1].data(), settings[2].data(), nullptr};
  Child child;
  EXPECT_EQ(::posix_spawn(&child.pid, self.c_str(), &actions, nullptr, args, env), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  child.told = UniqueFd(ends[0]);
  return child;
}

// The last checkpoint that the child told of until it ended, or -1. Kills it a moment after the
// n-th, if n is not 0.
int64_t LastTold(const Child& child, int kill_after, std::chrono::microseconds moment) {
  int64_t last = -1, id = -1;
  for (int told = 1; ::read(child.told.get(), &id, sizeof id) == sizeof id; ++told) {
    last = id;
    if (told != kill_after) continue;
    pollfd wait = {child.told.get(), POLLIN, 0};
    const timespec until = {0, moment.count() * 1000};
    ::ppoll(&wait, 1, &until, nullptr);
    ::kill(child.pid, SIGKILL);
  }
  return last;
}

// Runs with SHOAL_TEST_RUNS seeds; the slow lane gives it hundreds.
TEST(PsKill, AtAnyMomentOfACheckpointLeavesTheNewestCommitted) {
  const char* runs = std::getenv("SHOAL_TEST_RUNS");
  const char* first = std::getenv("SHOAL_TEST_FIRST");
  auto dir = TempDir::Create().value();
  const auto root = dir.path() / "checkpoints";
  int64_t newest = -1;
  const int begin = first == nullptr ? 1 : std::atoi(first);
  for (int run = begin; run < begin + (runs == nullptr ? 6 : std::atoi(runs)); ++run) {
    SCOPED_TRACE("seed " + std::to_string(run));
    std::mt19937 random(static_cast<uint32_t>(run));
    const char* points[] = {"ps.checkpoint.write", "file.rename", "ps.checkpoint.commit", ""};
    const char* point = points[run % 4];
    std::string faults;
    if (*point != '\0') {
      const uint32_t most = run % 4 == 0 ? 200 : run % 4 == 1 ? 60 : 20;
      faults = std::string(point) + "=kill@" + std::to_string(1 + random() % most);
    }
    const Child child = StartChild(root, static_cast<uint32_t>(run), faults);
    const int64_t last = LastTold(child, *point == '\0' ? 1 + static_cast<int>(random() % 20) : 0,
                                  std::chrono::microseconds(random() % 3000));
    int status = 0;
    ASSERT_EQ(::waitpid(child.pid, &status, 0), child.pid);
    // Killed, or, if its moment never came, done; 1: it found no cut when it came back.
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0)
        << status;
    newest = std::max(newest, last);
    if (newest < 0) continue;
    const auto found = NewestIntact(root);
    ASSERT_OK(found);
    EXPECT_GE(found->checkpoint, newest);
    const CheckpointSum sum = SumCheckpoint(root, found->checkpoint);
    EXPECT_EQ(sum.values, sum.progress * 4);
  }
}

}  // namespace
}  // namespace shoal::ps
