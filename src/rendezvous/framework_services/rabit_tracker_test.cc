// Rabit's tracker, both protocols: workers that behave like rabit's and XGBoost's, and other
// clients.
#include "rendezvous/framework_services/rabit_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <random>

#include "rendezvous/framework_services/rabit_worker.h"

namespace shoal::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = RabitAction::Kind;

// A tracker and what it answered, by connection.
struct World {
  explicit World(int workers) : tracker(workers) {}

  uint64_t Open(const std::string& host = "10.0.0.1") {
    tracker.Opened(++last, host);
    return last;
  }
  void Say(uint64_t id, std::string_view bytes) { Take(tracker.Received(id, bytes)); }
  void Hang(uint64_t id) { Take(tracker.Closed(id)); }
  void Take(const RabitTracker::Actions& actions) {
    for (const RabitAction& action : actions) {
      if (action.kind == Kind::kSend) sent[action.connection] += action.text;
      if (action.kind == Kind::kClose) closed[action.connection] = action.text;
      if (action.kind == Kind::kAlarm)
        alarms.push_back(action.host + ":" + std::to_string(action.port));
      if (action.kind == Kind::kPrint || action.kind == Kind::kNote) lines.push_back(action.text);
    }
  }
  int32_t Int(uint64_t id) {
    std::string& bytes = sent[id];
    EXPECT_GE(bytes.size(), 4U) << "of connection " << id;
    if (bytes.size() < 4) return -999;
    int32_t value = 0;
    std::memcpy(&value, bytes.data(), 4);
    bytes.erase(0, 4);
    return value;
  }
  std::string Text(uint64_t id) {
    const auto size = static_cast<size_t>(Int(id));
    const std::string text = sent[id].substr(0, size);
    sent[id].erase(0, size);
    return text;
  }

  RabitTracker tracker;
  uint64_t last = 0;
  std::map<uint64_t, std::string> sent, closed;
  std::vector<std::string> alarms, lines;
};

std::string Hello(int rank, const std::string& task, const std::string& command, int world = -1) {
  return RabitInt(kRabitMagic) + RabitInt(rank) + RabitInt(world) + RabitText(task) +
         RabitText(command);
}

std::string JsonHello(const std::string& task, const std::string& command, int rank = -1) {
  return RabitInt(kRabitMagic) +
         RabitText(R"({"world_size":-1,"rank":)" + std::to_string(rank) + R"(,"task_id":")" + task +
                   "\"}") +
         RabitText(command);
}

std::string JsonStart(const std::string& task, int port, int error_port) {
  return JsonHello(task, R"({"cmd":1,"port":)" + std::to_string(port) + R"(,"error_port":)" +
                             std::to_string(error_port) + "}");
}

TEST(RabitTopology, AreThoseOfTheTrackerOfDmlc) {
  const auto links = BuildRabitTopology(7);
  const std::vector<std::pair<int, std::vector<int>>> expected = {
      {-1, {1, 6}}, {0, {0, 2, 3}}, {1, {1}}, {1, {1}}, {6, {6}}, {6, {6}}, {0, {0, 5, 4}}};
  for (size_t rank = 0; rank < links.size(); ++rank) {
    EXPECT_EQ(links[rank].parent, expected[rank].first) << rank;
    EXPECT_EQ(links[rank].tree, expected[rank].second) << rank;
  }
  EXPECT_EQ(BuildRabitTopology(1), (std::vector<RabitTopology>{{-1, {}, 0, 0}}));
}

TEST(RabitTopology, AreSymmetricAtAnySize) {
  for (int size = 1; size <= 130; ++size) {
    const auto links = BuildRabitTopology(size);
    for (int rank = 0; rank < size; ++rank) {
      const RabitTopology& at = links[static_cast<size_t>(rank)];
      EXPECT_EQ(links[static_cast<size_t>(at.next)].previous, rank);
      for (const int other : at.Neighbours(rank)) {
        EXPECT_TRUE(links[static_cast<size_t>(other)].Neighbours(other).contains(rank));
      }
      EXPECT_EQ(at.parent == -1, rank == 0);
    }
  }
}

// A rabit worker's messages from its hello to the port that it listens on.
struct BinaryWorker {
  uint64_t id = 0;
  int rank = -1;
  std::set<int> neighbours;
  std::set<int> good = {};

  void ReadRank(World* world, int workers) {
    rank = world->Int(id);
    world->Int(id);  // parent
    EXPECT_EQ(world->Int(id), workers);
    for (int left = world->Int(id); left > 0; --left) neighbours.insert(world->Int(id));
    for (int i = 0; i < 2; ++i) {
      if (const int neighbour = world->Int(id); neighbour != -1) neighbours.insert(neighbour);
    }
  }
  std::string Good() const {
    std::string bytes = RabitInt(static_cast<int32_t>(good.size()));
    for (const int other : good) bytes += RabitInt(other);
    return bytes;
  }
};

// Every worker in `turns` links as the tracker says; `all` are by rank. Returns the pairs that
// connected.
std::set<std::pair<int, int>> CoordinatorConnection(World* world, std::vector<BinaryWorker>* all,
                                                    int count) {
  std::set<std::pair<int, int>> pairs;
  std::map<int, int> accepts;
  for (int step = 0; step < count; ++step) {
    BinaryWorker* worker = nullptr;
    for (BinaryWorker& one : *all) {
      if (one.rank == -1 && world->sent[one.id].size() >= 24) worker = &one;
    }
    EXPECT_NE(worker, nullptr) << "nobody has the turn";
    if (worker == nullptr) return pairs;
    worker->ReadRank(world, static_cast<int>(all->size()));
    // The first time it reports an unreachable worker and asks again.
    for (const int errors : {1, 0}) {
      world->Say(worker->id, worker->Good());
      const int connects = world->Int(worker->id);
      const int waits = world->Int(worker->id);
      EXPECT_EQ(static_cast<size_t>(connects + waits),
                worker->neighbours.size() - worker->good.size());
      for (int i = 0; i < connects; ++i) {
        EXPECT_THAT(world->Text(worker->id), HasSubstr("10.0.0."));
        const int port = world->Int(worker->id);
        const int other = world->Int(worker->id);
        EXPECT_EQ(port, 4000 + other);
        if (errors != 0) continue;
        EXPECT_GT(accepts[other]--, 0);
        EXPECT_TRUE(
            pairs.emplace(std::min(worker->rank, other), std::max(worker->rank, other)).second);
      }
      world->Say(worker->id, RabitInt(errors));
      accepts[worker->rank] = waits;
    }
    world->Say(worker->id, RabitInt(4000 + worker->rank));
  }
  for (const auto& [rank, left] : accepts) EXPECT_EQ(left, 0) << "rank " << rank << " waits";
  return pairs;
}

TEST(RabitTracker, BinaryWorkersAllFindTheirNeighbours) {
  for (const int size : {1, 2, 3, 8, 21}) {
    World world(size);
    std::vector<BinaryWorker> workers(static_cast<size_t>(size));
    for (int i = size - 1; i >= 0; --i) {
      BinaryWorker& worker = workers[static_cast<size_t>(i)];
      worker.id = world.Open("10.0.0." + std::to_string(i));
      world.Say(worker.id, Hello(-1, std::to_string(i), "start"));
      EXPECT_EQ(world.Int(worker.id), kRabitMagic);
    }
    const auto pairs = CoordinatorConnection(&world, &workers, size);
    size_t ends = 0;
    for (int i = 0; i < size; ++i) {
      EXPECT_EQ(workers[static_cast<size_t>(i)].rank, i) << "the task's own number";
      ends += workers[static_cast<size_t>(i)].neighbours.size();
    }
    EXPECT_EQ(pairs.size() * 2, ends);
    EXPECT_TRUE(world.closed.empty());
  }
}

TEST(RabitTracker, ALostWorkerComesBackToItsRankAndNeighbours) {
  World world(4);
  std::vector<BinaryWorker> workers(4);
  for (size_t i = 0; i < 4; ++i) {
    workers[i].id = world.Open("10.0.0.9");
    world.Say(workers[i].id, Hello(-1, std::to_string(i), "start"));
    world.Int(workers[i].id);
  }
  CoordinatorConnection(&world, &workers, 4);
  // A restarted worker; the others drop it and recover with the links that are still good.
  for (size_t i = 0; i < 4; ++i) {
    if (i != 2) {
      workers[i].good = workers[i].neighbours;
      workers[i].good.erase(2);
    }
    workers[i].neighbours.clear();
    workers[i].rank = -1;
    workers[i].id = world.Open("10.0.0.9");
    world.Say(workers[i].id, i == 2 ? Hello(-1, "2", "start")
                                    : Hello(static_cast<int>(i), std::to_string(i), "recover"));
    world.Int(workers[i].id);
  }
  const auto pairs = CoordinatorConnection(&world, &workers, 4);
  EXPECT_EQ(workers[2].rank, 2);
  EXPECT_EQ(pairs.size(), workers[2].neighbours.size());
  for (const auto& [a, b] : pairs) EXPECT_TRUE(a == 2 || b == 2);
}

TEST(RabitTracker, WhoHangsUpAtItsTurnDoesNotHoldTheOthers) {
  World world(2);
  const auto a = world.Open(), b = world.Open();
  world.Say(a, Hello(-1, "NULL", "start"));
  world.Say(b, Hello(-1, "NULL", "start"));
  EXPECT_GT(world.sent[a].size(), 4U);
  EXPECT_EQ(world.sent[b].size(), 4U);
  world.Hang(a);
  EXPECT_GT(world.sent[b].size(), 4U);
}

TEST(RabitTracker, AfterEverybodysShutdownAnotherGroupForms) {
  World world(2);
  for (int round = 0; round < 2; ++round) {
    std::vector<BinaryWorker> workers(2);
    for (BinaryWorker& worker : workers) {
      worker.id = world.Open();
      world.Say(worker.id, Hello(-1, "NULL", "start", 2));
      world.Int(worker.id);
    }
    EXPECT_EQ(CoordinatorConnection(&world, &workers, 2).size(), 1U);
    const auto printer = world.Open();
    world.Say(printer, Hello(0, "NULL", "print") + RabitText("round ended"));
    EXPECT_EQ(world.closed.at(printer), "");
    for (const BinaryWorker& worker : workers) {
      const auto id = world.Open();
      world.Say(id, Hello(worker.rank, "NULL", "shutdown"));
      EXPECT_EQ(world.closed.at(id), "");
    }
  }
  EXPECT_THAT(world.lines, ElementsAre("round ended", "round ended"));
}

// ---- JSON ----

TEST(RabitTracker, XgboostsWorkersFormARing) {
  World world(3);
  std::map<std::string, uint64_t> ids;
  for (const char* task : {"1", "2", "0"}) {
    ids[task] = world.Open(std::string("10.0.0.") + task);
    world.Say(ids[task], JsonStart(task, 4000 + task[0] - '0', 5000 + task[0] - '0'));
    EXPECT_EQ(world.Int(ids[task]), kRabitMagic);
    EXPECT_EQ(world.Text(ids[task]), R"({"world_size":3})");
  }
  EXPECT_EQ(world.Text(ids["0"]), R"({"rank":1,"host":"10.0.0.1","port":4001})");
  EXPECT_EQ(world.Text(ids["1"]), R"({"rank":2,"host":"10.0.0.2","port":4002})");
  EXPECT_EQ(world.Text(ids["2"]), R"({"rank":0,"host":"10.0.0.0","port":4000})");
  world.Say(ids["0"], RabitText(R"({"done":true})"));
  EXPECT_TRUE(world.closed.empty());

  const auto failed = world.Open();
  world.Say(failed, JsonHello("1", R"({"cmd":3,"msg":"out of memory","code":2})", 1));
  EXPECT_THAT(world.alarms, ElementsAre("10.0.0.0:5000", "10.0.0.2:5002"));
  EXPECT_THAT(world.lines.at(0), HasSubstr("worker 1 at 10.0.0.1 has failed: out of memory"));
  world.Say(world.Open(), JsonHello("2", R"({"cmd":3,"msg":"too","code":2})", 2));
  EXPECT_EQ(world.alarms.size(), 2U) << "told once";
  const auto end = world.Open();
  world.Say(end, JsonHello("0", R"({"cmd":2})", 0));
  EXPECT_EQ(world.closed.at(end), "");
}

TEST(RabitTracker, BytesMayComeOneByOne) {
  World world(1);
  const auto json = world.Open();
  for (const char c : JsonStart("0", 4000, 5000)) world.Say(json, {&c, 1});
  world.Int(json);
  world.Text(json);
  EXPECT_EQ(world.Text(json), R"({"rank":0,"host":"10.0.0.1","port":4000})");
  const auto binary = world.Open();
  for (const char c : Hello(-1, "NULL", "start")) world.Say(binary, {&c, 1});
  EXPECT_EQ(world.sent[binary].size(), 4 + 6 * 4U);
}

TEST(RabitTracker, WhoGivesUpWaitingLeavesItsPlace) {
  World world(2);
  const auto gone = world.Open("10.0.0.1"), first = world.Open("10.0.0.2");
  world.Say(gone, JsonStart("", 4000, 5000));
  world.Hang(gone);
  world.Say(first, JsonStart("", 4001, 5001));
  EXPECT_TRUE(world.tracker.IsSilent(world.Open()));
  EXPECT_FALSE(world.tracker.IsSilent(first));
  const auto second = world.Open("10.0.0.3");
  world.Say(second, JsonStart("", 4002, 5002));
  world.Int(first);
  world.Text(first);
  EXPECT_THAT(world.Text(first), HasSubstr("10.0.0.3"));
}

TEST(RabitTracker, SaysWhatIsWrong) {
  const auto refusal = [](const std::string& bytes) {
    World world(2);
    const auto id = world.Open();
    world.Say(id, bytes);
    return world.closed.contains(id) ? world.closed[id] : "taken";
  };
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\n"), "it is not a worker of rabit or XGBoost");
  EXPECT_THAT(refusal(Hello(-1, "NULL", "start", 3)), HasSubstr("3 workers, expected 2"));
  EXPECT_THAT(refusal(Hello(2, "NULL", "start")), HasSubstr("got rank 2 of 2"));
  EXPECT_THAT(refusal(Hello(0, "NULL", "recover")), HasSubstr("no ranks were given out yet"));
  EXPECT_THAT(refusal(Hello(0, "NULL", "shutdown")), HasSubstr("never given out"));
  EXPECT_THAT(refusal(Hello(-1, "NULL", "st\nop")), HasSubstr("expected start, recover, print"));
  EXPECT_THAT(refusal(RabitInt(kRabitMagic) + RabitInt(-1) + RabitInt(-1) + RabitInt(-5)),
              HasSubstr("got a text of -5 bytes"));
  EXPECT_THAT(refusal(RabitInt(kRabitMagic) + RabitInt(1 << 30) + "{\"ra"),
              HasSubstr("got a text of 1073741824 bytes"));
  EXPECT_THAT(refusal(JsonStart("0", 0, 5000)), HasSubstr("got port 0, expected 1 … 65535"));
  EXPECT_THAT(refusal(JsonHello("0", R"({"cmd":9})")), HasSubstr("got command 9"));
  EXPECT_NE(refusal(RabitInt(kRabitMagic) + RabitText("{\"a\": nonsense}")), "taken");
  EXPECT_THAT(refusal(JsonStart("0", 1, 1) + std::string(5000, 'x')),
              HasSubstr("before it has got"));
}

TEST(RabitTracker, RefusesAWorkerOfTheOtherProtocolAndOneTooMany) {
  World world(2);
  world.Say(world.Open(), JsonStart("0", 4000, 5000));
  const auto binary = world.Open();
  world.Say(binary, Hello(-1, "NULL", "start"));
  EXPECT_THAT(world.closed.at(binary), HasSubstr("all need the same XGBoost"));
  World full(1);
  const auto other = full.Open(), third = full.Open();
  for (const auto id : {full.Open(), other, third}) full.Say(id, Hello(-1, "NULL", "start"));
  EXPECT_FALSE(full.closed.contains(other)) << "waits for the next group";
  EXPECT_THAT(full.closed.at(third), HasSubstr("all 1 workers are there already"));
}

}  // namespace
}  // namespace shoal::rendezvous
