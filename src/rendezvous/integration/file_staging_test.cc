// A job's files over the connection: a host gets each file complete or not at all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/id.h"
#include "host/files/manifest.h"
#include "rendezvous/integration/job_harness.h"
#include "rendezvous/transfer/file_fetch.h"
#include "rendezvous/transfer/stage_files.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileShip : public testing::Test {
 protected:
  FileShip() : bench_(JobOf({ShellRole("worker", 1, "sleep 60")})) {
    fs::create_directories(blobs());
    coordinator_ = bench_.SpawnCoordinator();
    EXPECT_TRUE(bench_.Until([&] { return ReadCoordinatorFile(bench_.dir()).ok(); }));
    options_.token = ReadTokenFile(bench_.dir()).value();
    options_.find = [this] { return ReadCoordinatorFile(bench_.dir()); };
    options_.give_up_after = std::chrono::seconds(2);
  }
  fs::path blobs() const { return fs::path(bench_.dir()) / "files" / "blobs"; }
  // A blob of the coordinator: `text` is stored under the hash of `named`.
  host::Blob Offer(const std::string& text, const std::string& named) {
    const host::Blob blob{Sha256Hex(named), static_cast<int64_t>(named.size())};
    std::ofstream(blobs() / blob.sha256, std::ios::binary) << text;
    return blob;
  }
  host::BlobCache Cache() { return host::BlobCache::Open(temp_.path() / "cache").value(); }

  JobHarness bench_;
  TempDir temp_ = TempDir::Create().value();
  pid_t coordinator_ = 0;
  FetchOptions options_;
};

TEST_F(FileShip, BringsManySmallAndOneLarge) {
  std::vector<host::Blob> wanted;
  for (int i = 0; i < 200; ++i)
    wanted.push_back(Offer("file " + std::to_string(i), "file " + std::to_string(i)));
  const std::string large(9 << 20, 'l');
  wanted.push_back(Offer(large, large));
  wanted.push_back(Offer("", ""));
  host::BlobCache cache = Cache();
  const Status fetched = FetchBlobs(options_, wanted, &cache);
  ASSERT_TRUE(fetched.ok()) << fetched.message();
  for (const host::Blob& blob : wanted) EXPECT_TRUE(cache.Has(blob));
  EXPECT_TRUE(fs::is_empty(temp_.path() / "cache/tmp"));
}

TEST_F(FileShip, TakesNothingElseForIt) {
  host::BlobCache cache = Cache();
  const host::Blob other = Offer("exactly these bytez", "exactly these bytes");
  EXPECT_EQ(FetchBlobs(options_, {other}, &cache).code(), Code::kDataLoss);
  const host::Blob longer = Offer("more than was said", "short");
  EXPECT_EQ(FetchBlobs(options_, {longer}, &cache).code(), Code::kResourceExhausted);
  const host::Blob missing{Sha256Hex("nowhere"), 7};
  EXPECT_EQ(FetchBlobs(options_, {missing}, &cache).code(), Code::kNotFound);
  for (const host::Blob& blob : {other, longer, missing}) EXPECT_FALSE(cache.Has(blob));
}

TEST_F(FileShip, AskedForWhatIsNoHashItCloses) {
  std::ofstream(fs::path(bench_.dir()) / "files" / "manifest.json") << "text";
  host::BlobCache cache = Cache();
  EXPECT_FALSE(FetchBlobs(options_, {{"../../token", 65}}, &cache).ok());
  EXPECT_EQ(FetchManifest(options_).value(), "text");
}

TEST_F(FileShip, AWrongTokenGetsNothing) {
  std::ofstream(fs::path(bench_.dir()) / "files" / "manifest.json") << "text";
  options_.token = NewToken();
  EXPECT_EQ(FetchManifest(options_).status().code(), Code::kUnauthenticated);
}

TEST_F(FileShip, GoesOnWithACoordinatorThatCameBack) {
  std::ofstream(fs::path(bench_.dir()) / "files" / "manifest.json") << "text";
  bench_.KillProcess(coordinator_, SIGKILL);
  options_.give_up_after = std::chrono::seconds(20);
  bench_.SpawnCoordinator();
  EXPECT_EQ(FetchManifest(options_).value(), "text");
}

// On another host, which does not see the manifest: over the connection.
TEST_F(FileShip, PreparesFromTheConnectionAlone) {
  host::Manifest manifest;
  const host::Blob blob = Offer("print(1)", "print(1)");
  manifest.entries.push_back(
      {"main.py", host::ManifestEntry::Kind::kFile, false, blob.size, "", blob.sha256});
  std::ofstream(fs::path(bench_.dir()) / "files" / "manifest.json") << host::ToText(manifest);
  StageFilesOptions options;
  options.job_dir = (temp_.path() / "elsewhere").string();
  fs::create_directories(options.job_dir);
  for (const char* name : {"token", "coordinator.json"})
    fs::copy(fs::path(bench_.dir()) / name, fs::path(options.job_dir) / name);
  options.scratch = temp_.path() / "scratch";
  options.cache = temp_.path() / "cache";
  options.only_if_staged = true;
  EXPECT_EQ(StageFiles(options).status().code(), Code::kUnavailable);
  options.only_if_staged = false;
  const auto prepared = StageFiles(options);
  ASSERT_TRUE(prepared.ok()) << prepared.status().message();
  EXPECT_EQ(bench_.ReadOr((prepared->work_dir / "main.py").string(), ""), "print(1)");
  EXPECT_TRUE(prepared->env.empty());
  options.only_if_staged = true;
  EXPECT_TRUE(StageFiles(options).ok());
}

}  // namespace
}  // namespace shoal::rendezvous
