// Which checkpoint servers restore: never one by itself because of a read that failed, and never
// different ones when they start together.
#include "ps/checkpoint/restore_point.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <thread>

#include "base/fault_injection.h"
#include "ps/checkpoint/checkpoint_dir.h"
#include "ps/testing/test_cluster.h"
#include "ps/testing/test_explorer.h"

namespace shoal::ps {
namespace {

TEST(RestorePoint, ServersThatStartTogetherFollowServer0) {
  EXPECT_EQ(FollowRestorePoint({-1, -1, -1}, -1).value(), -1);
  EXPECT_EQ(FollowRestorePoint({4, -1, -1}, 4).value(), 4);
  EXPECT_EQ(FollowRestorePoint({3, -1, -1}, 4).value(), 3);   // it passed over 4
  EXPECT_EQ(FollowRestorePoint({4, -1, -1}, 3).value(), 4);   // to be found damaged here
  EXPECT_EQ(FollowRestorePoint({4, -1, -1}, -1).value(), 4);  // likewise
  EXPECT_EQ(FollowRestorePoint({-1, -1, -1}, 2).status().code(), Code::kFailedPrecondition);
}

TEST(RestorePoint, OneThatComesBackAloneTakesTheNewest) {
  EXPECT_EQ(FollowRestorePoint({4, 6, -1}, 6).value(), 6);
  EXPECT_EQ(FollowRestorePoint({4, 6, -1}, 5).value(), 5);  // 6 is damaged
  EXPECT_EQ(FollowRestorePoint({4, 6, -1}, 7).value(), 7);  // committed after it was asked
  EXPECT_EQ(FollowRestorePoint({-1, 0, -1}, 0).value(), 0);
  EXPECT_EQ(FollowRestorePoint({-1, -1, 0}, 0).value(), 0);  // its manifest has just appeared
  EXPECT_EQ(FollowRestorePoint({4, -1, 5}, 5).value(), 5);
  EXPECT_EQ(FollowRestorePoint({4, 6, -1}, 3).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(FollowRestorePoint({-1, 0, -1}, -1).status().code(), Code::kFailedPrecondition);
}

TEST(RestorePoint, TravelsAsItIs) {
  const RestorePoint point{1, 5, 6};
  EXPECT_EQ(DecodeRestorePoint(EncodeRestorePoint(point)).value(), point);
  EXPECT_FALSE(DecodeRestorePoint("short").ok());
}

// --- All orders ---

enum class Rule { kAll, kErrorsAreDamage, kEachByItself };
constexpr int kServers = 3;
constexpr int8_t kOld = 0;  // two checkpoints lie there; a third may come
constexpr int8_t kNew = 1;

struct State {
  std::array<int8_t, kServers> base;    // what a server that is up goes on from; kDown
  std::array<int8_t, kServers> damage;  // it finds the newest of the two damaged
  int8_t errors = 1;                    // reads that may still fail
  int8_t deaths = 1;                    // of single servers, once all are up
  int8_t committed = -1;                // by server 0 since it started
  int8_t wholes = 2;                    // checkpoints that lie there
  int8_t together = 1;                  // not all have been up yet
};
constexpr int8_t kDown = -2;

struct Model {
  Rule rule;

  // The newest that this server finds whole; kDown: it could not be read.
  static int8_t NewestOf(const State& state, int server) {
    if (state.wholes == 3) return 2;
    return state.damage[static_cast<size_t>(server)] != 0 ? kOld : kNew;
  }

  void Start(State state, int server, bool fails, StateSpace<State>* space) const {
    auto& base = state.base[static_cast<size_t>(server)];
    int8_t newest = NewestOf(state, server);
    if (fails) {
      --state.errors;
      if (rule != Rule::kErrorsAreDamage) return space->Add(state);  // it does not start
      newest = static_cast<int8_t>(newest - 1);
    }
    if (server == 0 || rule != Rule::kAll) {
      base = newest;
      if (server == 0) state.committed = -1;
    } else {
      if (state.base[0] == kDown) return;  // it waits
      const auto follow = FollowRestorePoint({state.base[0], state.committed, -1}, newest);
      if (!follow.ok() || *follow > newest) return;  // it does not start
      base = static_cast<int8_t>(*follow);
    }
    bool all = true;
    for (const int8_t one : state.base) all = all && one != kDown;
    if (all && state.together != 0) {
      for (const int8_t one : state.base) {
        if (one != state.base[0]) space->Fail("servers that start together differ");
      }
      state.together = 0;
    }
    space->Add(state);
  }

  void Steps(const State& state, StateSpace<State>* space) const {
    for (int server = 0; server < kServers; ++server) {
      if (state.base[static_cast<size_t>(server)] == kDown) {
        Start(state, server, false, space);
        if (state.errors > 0) Start(state, server, true, space);
      } else if (state.together == 0 && state.deaths > 0) {
        State next = state;
        --next.deaths;
        next.base[static_cast<size_t>(server)] = kDown;
        space->Add(next);
      }
    }
    if (state.together == 0 && state.wholes == 2 && state.base[0] != kDown) {
      State next = state;
      next.wholes = 3;
      next.committed = 2;
      space->Add(next);
    }
  }
  void AtEnd(const State&, StateSpace<State>*) const {}
};

std::string Explore(Rule rule, std::array<int8_t, kServers> damage) {
  State first{};
  first.base.fill(kDown);
  first.damage = damage;
  first.errors = first.together = first.deaths = 1;
  first.committed = -1;
  first.wholes = 2;
  Model model{rule};
  return StateSpace<State>().Explore(first, model);
}

TEST(RestorePointModel, ServersNeverPartInAnyOrder) {
  for (int damaged = 0; damaged < 8; ++damaged) {
    std::array<int8_t, kServers> damage{};
    for (int i = 0; i < kServers; ++i) {
      damage[static_cast<size_t>(i)] = static_cast<int8_t>(damaged >> i & 1);
    }
    EXPECT_EQ(Explore(Rule::kAll, damage), "") << damaged;
  }
}

TEST(RestorePointModel, EachRuleIsNeeded) {
  EXPECT_NE(Explore(Rule::kErrorsAreDamage, {0, 0, 0}), "");
  EXPECT_NE(Explore(Rule::kEachByItself, {0, 1, 0}), "");
}

// --- Servers ---

class Restoring : public ::testing::Test {
 protected:
  Restoring() : cluster_(Options()) {
    auto client = cluster_.Connect(0);
    const auto table = client->CreateTable(DenseSpec("t", 64, 1));
    EXPECT_TRUE(table.ok());
    auto admin = cluster_.ConnectAdmin();
    for (int round = 0; round < 2; ++round) {
      std::vector<Key> keys(64);
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
      const std::vector<float> ones(64, 1.0f);
      EXPECT_TRUE(client->Wait(client->Push(*table, keys, ConstRows(ones.data(), 1)).value()).ok());
      EXPECT_TRUE(admin->Checkpoint().ok());
    }
  }
  ~Restoring() override { EXPECT_TRUE(SetFaults("").ok()); }
  static ClusterOptions Options() {
    ClusterOptions options;
    options.workers = 1;
    options.checkpoints = true;
    return options;
  }
  // Both are down, as after the job's end.
  void Stop() {
    for (int server = 0; server < 2; ++server) {
      cluster_.KillServer(server);
      cluster_.members.Set(static_cast<size_t>(server), "");
    }
  }
  Status Start(int server) {
    auto started = Server::Start(cluster_.OptionsOf(server));
    if (!started.ok()) return started.status();
    servers_.push_back(std::move(started).value());
    cluster_.members.Set(static_cast<size_t>(server), servers_.back()->address());
    return Status::Ok();
  }
  Cluster cluster_;
  std::vector<std::unique_ptr<Server>> servers_;
};

TEST_F(Restoring, AReadThatFailsEndsTheStart) {
  Stop();
  ASSERT_OK(Start(0));
  EXPECT_EQ(servers_[0]->restored_checkpoint(), 1);
  for (const std::string point : {"ps.checkpoint.read=EIO@1", "ps.checkpoint.read=EIO@9",
                                  "ps.checkpoint.manifest=EACCES@1", "ps.checkpoint.list=EIO@1"}) {
    ASSERT_OK(SetFaults(point));
    const Status failed = Start(1);
    ASSERT_FALSE(failed.ok()) << point;
    EXPECT_NE(failed.message().find("checkpoint"), std::string::npos) << failed.message();
  }
  ASSERT_OK(SetFaults(""));
  ASSERT_OK(Start(1));
  EXPECT_EQ(servers_[1]->restored_checkpoint(), 1);
}

TEST_F(Restoring, AllWaitForServer0AndTakeItsChoice) {
  Stop();
  // Server 0 passes over the newest, whose manifest is damaged while it looks.
  const auto manifest = CheckpointPath(cluster_.checkpoint_dir(), 1) / "manifest.json";
  const std::string sound = ReadFile(manifest, 1 << 20).value();
  ASSERT_OK(WriteFileAtomically(manifest, sound.substr(0, sound.size() / 2), 0600));
  Status second;
  std::thread other;
  {
    auto first = Server::Start(cluster_.OptionsOf(0));
    ASSERT_OK(first);
    EXPECT_EQ((*first)->restored_checkpoint(), 0);
    ASSERT_OK(WriteFileAtomically(manifest, sound, 0600));
    other = std::thread([&] { second = Start(1); });
    servers_.push_back(std::move(first).value());
    cluster_.members.Set(0, servers_.back()->address());
  }
  other.join();
  ASSERT_OK(second);
  EXPECT_EQ(servers_[1]->restored_checkpoint(), 0);
}

TEST_F(Restoring, OneThatFindsAnotherDirectoryDoesNotStart) {
  Stop();
  auto options = cluster_.OptionsOf(0);
  options.checkpoint_dir = cluster_.checkpoint_dir() / "elsewhere";
  auto first = Server::Start(options);
  ASSERT_OK(first);
  cluster_.members.Set(0, (*first)->address());
  const Status failed = Start(1);
  EXPECT_EQ(failed.code(), Code::kFailedPrecondition) << failed.message();
  EXPECT_NE(failed.message().find("do all servers see the same checkpoint directory"),
            std::string::npos)
      << failed.message();
}

TEST_F(Restoring, OneThatIsToldToStopDoesNotWaitForServer0) {
  Stop();
  auto options = cluster_.OptionsOf(1);
  options.stopping = [] { return true; };
  EXPECT_EQ(Server::Start(options).status().code(), Code::kCancelled);
}

TEST_F(Restoring, OneThatDiedAloneTakesTheNewest) {
  auto admin = cluster_.ConnectAdmin();
  auto client = cluster_.Connect(0);
  cluster_.KillServer(1);
  cluster_.StartServer(1);
  EXPECT_EQ(cluster_.server(1).restored_checkpoint(), 1);
}

TEST(RestoringCopies, AReadThatFailsIsTriedAgain) {
  ClusterOptions options;
  options.workers = 1;
  options.checkpoints = true;
  options.replicas = 2;
  Cluster cluster(options);
  ASSERT_TRUE(AllReplicated(&cluster, 2));
  std::vector<Key> keys(64);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const std::vector<float> ones(64, 1.0f);
  {
    auto client = cluster.Connect(0);
    const auto table = client->CreateTable(DenseSpec("t", 64, 1));
    ASSERT_OK(table);
    ASSERT_OK(client->Wait(client->Push(*table, keys, ConstRows(ones.data(), 1)).value()));
    ASSERT_OK(cluster.ConnectAdmin()->Checkpoint());
  }
  for (int server = 0; server < 2; ++server) {
    cluster.KillServer(server);
    cluster.members.Set(static_cast<size_t>(server), "");
  }
  ASSERT_OK(SetFaults("ps.checkpoint.read=EIO@1"));
  for (int server = 0; server < 2; ++server) cluster.StartServer(server);
  EXPECT_TRUE(AllReplicated(&cluster, 2));
  ASSERT_OK(SetFaults(""));
  auto client = cluster.Connect(0);
  const auto table = client->CreateTable(DenseSpec("t", 64, 1));
  ASSERT_OK(table);
  std::vector<float> rows(64);
  ASSERT_OK(client->Wait(client->Pull(*table, keys, Rows(rows.data(), 1)).value()));
  EXPECT_EQ(rows, ones);
}

}  // namespace
}  // namespace shoal::ps
