// The assignment of parts: preferably to hosts that have the bytes in their cache, every part once,
// and the same answer for restarted workers. Two cache directories simulate two hosts.
#include "learn/data_locality/part_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>
#include <thread>

#include "base/fault_injection.h"
#include "learn/task/parameter_server.h"
#include "ps/server/server.h"

namespace shoal::learn {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(AssignParts, WorkersKeepTheirPartsWithoutNeed) {
  EXPECT_THAT(AssignParts({{}, {}, {}}), ElementsAre(0, 1, 2));
  // Both hosts hold all.
  EXPECT_THAT(AssignParts({{{0, 5}, {1, 5}}, {{0, 5}, {1, 5}}}), ElementsAre(0, 1));
}

TEST(AssignParts, TheMostBytesGoFirst) {
  EXPECT_THAT(AssignParts({{{1, 9}}, {{0, 9}}}), ElementsAre(1, 0));
  EXPECT_THAT(AssignParts({{{2, 5}}, {{2, 9}}, {}}), ElementsAre(0, 2, 1));
  EXPECT_THAT(AssignParts({{{1, 5}, {0, 4}}, {{1, 9}}}), ElementsAre(0, 1));
}

TEST(AssignParts, EveryPartOnce) {
  EXPECT_TRUE(rc::check([] {
    const auto workers = *rc::gen::inRange<uint32_t>(1, 20);
    std::vector<std::vector<CachedPart>> held(workers);
    for (auto& of : held) {
      for (int n = *rc::gen::inRange(0, 5); n > 0; --n)
        of.push_back({*rc::gen::inRange<uint32_t>(0, workers), *rc::gen::inRange<uint64_t>(0, 9)});
    }
    std::vector<uint32_t> parts = AssignParts(held);
    std::sort(parts.begin(), parts.end());
    RC_ASSERT(parts.size() == workers);
    for (uint32_t i = 0; i < workers; ++i) RC_ASSERT(parts[i] == i);
  }));
}

class OneServer final : public ps::Members {
 public:
  ps::MemberView Current() override { return view; }
  ps::MemberView view;
};

// Four files on a network file system, two hosts, a server.
class AgreeOnPartTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* word : {"one", "two", "three", "four"}) {
      paths_.push_back(dir_.path() / word);
      std::ofstream out(paths_.back());
      for (int i = 0; i < 3000; ++i) out << "word " << (i % 7) << '\n';
    }
    corpus_.emplace(data::Corpus::Open(paths_).value());
    StartServer();
  }

  void StartServer() {
    ps::ServerOptions options;
    options.servers = 1;
    options.workers = 2;
    options.token = "token";
    options.listen_host.clear();
    options.hub = hub_ = std::make_shared<ps::InProcessHub>();
    options.inproc_name = "server";
    server_ = ps::Server::Start(std::move(options)).value();
    members_.view = {1, {server_->inproc_address()}, 2};
  }

  DataCacheOptions HostOf(const std::string& name) {
    DataCacheOptions near;
    near.cache = dir_.path() / name;
    near.on_network = [this](const fs::path&) { return on_network_; };
    return near;
  }

  Result<PartAssignment> Ask(int index, const std::string& host, bool fixed = false) {
    const DataCacheOptions near = HostOf(host);
    ps::ClientOptions options;
    options.index = index;
    options.token = "token";
    options.hub = hub_;
    const auto client = ps::Client::Connect(std::move(options), &members_).value();
    SharedBlobs shared_blobs(client.get());
    return AgreeOnParts({.index = index,
                         .workers = 2,
                         .fixed = fixed,
                         .data_cache = &near,
                         .client = client.get(),
                         .shared_blobs = &shared_blobs,
                         .stop = &stop_,
                         .cached_parts_timeout = std::chrono::milliseconds(held_ms_)},
                        *corpus_);
  }

  // The parts of two workers on these hosts, and the bytes that they read into their caches.
  std::vector<uint64_t> Both(const std::string& host0, const std::string& host1) {
    std::optional<Result<PartAssignment>> zero, one;
    std::thread other([&] { one.emplace(Ask(1, host1)); });
    zero.emplace(Ask(0, host0));
    other.join();
    read_ = {};
    std::vector<uint64_t> parts;
    for (const auto& [part, host] : {std::pair(&*zero, host0), std::pair(&*one, host1)}) {
      EXPECT_TRUE(part->ok()) << part->status().message();
      if (!part->ok()) return {};
      parts.push_back((*part)->own);
      const CachedCorpus near =
          CacheShards(*corpus_, {corpus_->MakeShard((*part)->own, 2).value()}, HostOf(host));
      read_.kept += near.bytes.kept;
      read_.copied += near.bytes.copied;
      read_.remote += near.bytes.remote;
    }
    return parts;
  }

  TempDir dir_ = TempDir::Create().value();
  std::vector<std::string> paths_;
  std::optional<data::Corpus> corpus_;
  std::shared_ptr<ps::InProcessHub> hub_;
  OneServer members_;
  std::unique_ptr<ps::Server> server_;
  std::atomic<bool> stop_{false};
  bool on_network_ = true;
  int held_ms_ = 20'000;
  BytesRead read_;
};

TEST_F(AgreeOnPartTest, AJobThatRunsAgainFindsItsBytesOnTheSameHosts) {
  EXPECT_THAT(Both("a", "b"), ElementsAre(0, 1));
  EXPECT_EQ(read_.copied, corpus_->stored_bytes());
  StartServer();
  // The cluster has exchanged their hosts.
  EXPECT_THAT(Both("b", "a"), ElementsAre(1, 0));
  EXPECT_EQ(read_.kept, corpus_->stored_bytes());
  EXPECT_EQ(read_.copied + read_.remote, 0u);
  // A new host gets the part that the other one has not cached.
  StartServer();
  EXPECT_THAT(Both("c", "a"), ElementsAre(1, 0));
  EXPECT_EQ(read_.kept, corpus_->stored_bytes() / 2);
}

TEST_F(AgreeOnPartTest, AWorkerThatComesAgainHasThePartItHad) {
  Both("a", "b");
  StartServer();
  Both("b", "a");
  EXPECT_EQ(Ask(1, "b")->own, 0u);  // on another host
  EXPECT_EQ(Ask(0, "c")->own, 1u);
}

TEST_F(AgreeOnPartTest, FixedAssignmentsDoNotMove) {
  Both("a", "b");
  StartServer();
  EXPECT_EQ(Ask(0, "b", true)->own, 0u);  // no exchange: there is only one worker
  EXPECT_EQ(Ask(1, "a", true)->own, 1u);
}

TEST_F(AgreeOnPartTest, LocalDataDoesNotWait) {
  on_network_ = false;
  EXPECT_EQ(Ask(0, "a")->own, 0u);
  EXPECT_EQ(Ask(1, "b")->own, 1u);
  EXPECT_FALSE(fs::exists(dir_.path() / "a"));
}

TEST_F(AgreeOnPartTest, OneThatSaysNothingIsNotWaitedForLong) {
  Both("a", "b");
  StartServer();
  held_ms_ = 1;
  EXPECT_EQ(Ask(0, "b")->own, 1u);
  EXPECT_EQ(Ask(1, "a")->own, 0u);  // comes late
}

TEST_F(AgreeOnPartTest, TheOthersPartsAreKnownToo) {
  Both("a", "b");
  StartServer();
  PartAssignment told;
  std::thread other([&] { EXPECT_TRUE(Ask(1, "a").ok()); });
  told = Ask(0, "b").value();
  other.join();
  EXPECT_EQ(told.own, 1u);
  EXPECT_EQ(told.Of(0), 1u);
  EXPECT_EQ(told.Of(1), 0u);
  EXPECT_EQ(PartAssignment{}.Of(3), 3u) << "nobody moved";
}

TEST_F(AgreeOnPartTest, AnotherNumberOfWorkersIsAnError) {
  Both("a", "b");
  const DataCacheOptions near = HostOf("a");
  ps::ClientOptions options;
  options.index = 0;
  options.token = "token";
  options.hub = hub_;
  const auto client = ps::Client::Connect(std::move(options), &members_).value();
  SharedBlobs shared_blobs(client.get());
  const auto part = AgreeOnParts({.index = 0,
                                  .workers = 3,
                                  .data_cache = &near,
                                  .client = client.get(),
                                  .shared_blobs = &shared_blobs,
                                  .stop = &stop_},
                                 *corpus_);
  EXPECT_EQ(part.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(part.status().message(),
            "the data is divided among 2 workers, got 3; run the job with as many as before, or "
            "anew");
}

TEST_F(AgreeOnPartTest, ItCanBeStopped) {
  stop_ = true;
  EXPECT_EQ(Ask(1, "a").status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace shoal::learn
