// A model of a seat with two lanes whose logs reach its copy by two connections, explored
// exhaustively: a shard goes to another server and comes back, to the same lane or the other, while
// two clients push and the primary dies at any moment (docs/design/replication.md, partition.md).
// And the same with one rule left out: then the explorer must find what goes wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "ps/testing/test_explorer.h"

namespace shoal::ps {
namespace {

constexpr size_t kLanes = 2;
constexpr int kClients = 2;
constexpr size_t kLog = 9;      // entries of one lane; longer histories are not explored
constexpr size_t kFirst = 1;    // the lane that has the shard at first
constexpr uint8_t kMerges = 1;  // of maps that are about other shards

// A rule that is left out.
enum class Without {
  kNothing,
  kOwnLog,             // a copy's lane goes by what all logs have told
  kMapAsItIs,          // a merge hands the lanes the map as it was when it began
  kConfirmedDecision,  // the next owner is told before the copy knows of the decision
  kConfirmedArrival,   // the other server lets go before the copy has the rows
  kAllAtTakeOver,      // who takes over goes on with what each lane's own log has told
};

enum Shard : uint8_t { kElsewhere, kHere, kArriving };
enum Entry : uint8_t { kMap, kExpect, kRows, kPush };
// The way back: nothing, expected, rows sent, decided, told, heard.
enum Back : uint8_t { kAway, kExpected, kSent, kDecided, kTold, kHeard };

struct OneLane {
  uint8_t shard = kElsewhere;
  uint8_t rows = 0;  // whose pushes are in them, a bit each
};

// Epoch 0: lane kFirst has the shard; 1: the other server; 2: the lane that it comes back to.
struct State {
  std::array<OneLane, kLanes> mine{}, copy{};
  std::array<std::array<uint8_t, kLog>, kLanes> type{}, what{};
  std::array<uint8_t, kLanes> end{}, copied{};
  uint8_t epoch = 0, copys_epoch = 0;  // of all lanes together
  uint8_t merging = 0;                 // 1 + the lane that is next
  uint8_t merges_with = 0;             // the epoch when the merge began
  uint8_t merges = 0;
  uint8_t decided_at = 0, arrived_at = 0;  // positions that must be confirmed
  OneLane other{};
  uint8_t others_epoch = 0;
  uint8_t on_way = 0;  // the rows that it has, not decided yet
  uint8_t back = kAway;
  uint8_t sent = 0, answered = 0;        // clients
  std::array<uint8_t, kClients> held{};  // 1 + position that the answer waits for
  std::array<uint8_t, kClients> lane{};  // in this lane's log
  uint8_t paired = 0;                    // the copy is whole; before, nothing waits for it
  uint8_t dead = 0;
};

class LanesModel {
 public:
  using Space = StateSpace<State>;
  LanesModel(Without without, size_t to) : without_(without), to_(to) {}

  static State First() {
    State first;
    first.mine[kFirst].shard = first.copy[kFirst].shard = kHere;
    return first;
  }
  void Steps(const State& s, Space* space) {
    if (s.dead != 0) return;
    Check(s, space);
    for (int c = 0; c < kClients; ++c) ClientSteps(s, c, space);
    for (size_t lane = 0; lane < kLanes; ++lane) Deliver(s, lane, space);
    MoveAway(s, space);
    MoveBack(s, space);
    MergeSteps(s, space);
    if (s.paired != 0) return Die(s, space);
    if (s.copied != s.end) return;
    State next = s;
    next.paired = 1;
    space->Add(next);
  }
  void AtEnd(const State&, Space*) {}
  size_t came_back() const { return came_back_; }

 private:
  static bool Confirmed(const State& s, size_t lane, uint8_t position) {
    return s.paired == 0 || s.copied[lane] >= position;
  }
  bool IsOwner(uint8_t epoch, size_t lane) const {
    return (epoch == 0 && lane == kFirst) || (epoch == 2 && lane == to_);
  }

  // Lane::Adopt.
  void Adopt(OneLane* lane, size_t index, uint8_t epoch) const {
    if (lane->shard == kArriving && epoch < 2) return;
    if (IsOwner(epoch, index)) {
      lane->shard = kHere;
    } else {
      *lane = {};
    }
  }
  static bool Log(State* s, size_t lane, Entry type, uint8_t what) {
    if (s->end[lane] == kLog) return false;
    s->type[lane][s->end[lane]] = type;
    s->what[lane][s->end[lane]++] = what;
    return true;
  }
  static int Serving(const std::array<OneLane, kLanes>& lanes) {
    return static_cast<int>(std::count_if(lanes.begin(), lanes.end(),
                                          [](const OneLane& l) { return l.shard == kHere; }));
  }
  static void Check(const State& s, Space* space) {
    if (Serving(s.mine) + (s.other.shard == kHere) > 1) space->Fail("two serve the shard");
    for (const OneLane& lane : s.mine) {
      if (lane.shard == kHere && (s.answered & ~lane.rows) != 0)
        space->Fail("an acknowledged push is lost");
    }
  }

  // Each has one push, sent to whoever serves.
  static void ClientSteps(const State& s, int c, Space* space) {
    const auto bit = static_cast<uint8_t>(1 << c);
    const auto client = static_cast<size_t>(c);
    if (s.held[client] != 0 &&
        Confirmed(s, s.lane[client], static_cast<uint8_t>(s.held[client] - 1))) {
      State next = s;
      next.held[client] = 0;
      next.answered |= bit;
      space->Add(next);
    }
    if ((s.sent & bit) != 0) return;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      State next = s;
      if (s.mine[lane].shard != kHere || !Log(&next, lane, kPush, bit)) continue;
      next.sent |= bit;
      next.mine[lane].rows |= bit;
      next.held[client] = static_cast<uint8_t>(next.end[lane] + 1);
      next.lane[client] = static_cast<uint8_t>(lane);
      space->Add(next);
    }
    if (s.other.shard != kHere) return;
    State next = s;
    next.sent |= bit;
    next.answered |= bit;
    next.other.rows |= bit;
    space->Add(next);
  }

  // The copy's lane takes the next entry of its log, which confirms it.
  void Deliver(const State& s, size_t lane, Space* space) {
    const uint8_t at = s.copied[lane];
    if (at == s.end[lane]) return;
    State next = s;
    OneLane& copy = next.copy[lane];
    const uint8_t what = s.what[lane][at];
    switch (s.type[lane][at]) {
      case kMap:
        next.copys_epoch = std::max(s.copys_epoch, what);
        Adopt(&copy, lane, without_ == Without::kOwnLog ? next.copys_epoch : what);
        break;
      case kExpect:
        if (copy.shard == kHere) return space->Fail("a copy refuses what its primary tells");
        copy = {kArriving, 0};
        break;
      case kRows:
        copy.rows = what;
        break;
      default:
        copy.rows |= what;
    }
    ++next.copied[lane];
    space->Add(next);
  }

  void MoveAway(const State& s, Space* space) const {
    if (s.epoch == 0 && s.mine[kFirst].shard == kHere) {
      State next = s;
      if (!Log(&next, kFirst, kMap, 1)) return;
      next.on_way = s.mine[kFirst].rows;
      next.epoch = 1;
      Adopt(&next.mine[kFirst], kFirst, 1);
      next.decided_at = next.end[kFirst];
      space->Add(next);
    }
    const bool confirmed =
        Confirmed(s, kFirst, s.decided_at) || without_ == Without::kConfirmedDecision;
    if (s.epoch == 1 && s.others_epoch == 0 && confirmed) {
      State next = s;
      next.others_epoch = 1;
      next.other = {kHere, s.on_way};
      space->Add(next);
    }
  }

  void MoveBack(const State& s, Space* space) {
    State next = s;
    if (s.back == kAway && s.other.shard == kHere && s.mine[to_].shard == kElsewhere) {
      if (!Log(&next, to_, kExpect, 0)) return;
      next.mine[to_] = {kArriving, 0};
      next.back = kExpected;
    } else if (s.back == kExpected) {
      if (!Log(&next, to_, kRows, s.other.rows)) return;
      next.other.shard = kElsewhere;
      next.mine[to_].rows = s.other.rows;
      next.arrived_at = next.end[to_];
      next.back = kSent;
    } else if (s.back == kSent &&
               (Confirmed(s, to_, s.arrived_at) || without_ == Without::kConfirmedArrival)) {
      next.others_epoch = 2;
      next.other = {};
      next.back = kDecided;
    } else if (s.back == kDecided && s.merging == 0) {
      next.epoch = 2;
      next.back = kTold;
      next.merging = 1;
      next.merges_with = 2;
    } else if (s.back == kTold && s.merging == 0 && Confirmed(s, 0, s.end[0])) {
      next.back = kHeard;  // the answer waits for the log of the lane that was asked, the first
      ++came_back_;
    } else {
      return;
    }
    space->Add(next);
  }

  // A map that says something new, of whatever shard: one lane after another takes all that is
  // known.
  void MergeSteps(const State& s, Space* space) const {
    State next = s;
    if (s.merging == 0) {
      if (s.merges == kMerges) return;
      ++next.merges;
      next.merging = 1;
      next.merges_with = s.epoch;
      return space->Add(next);
    }
    const size_t lane = s.merging - size_t{1};
    const uint8_t epoch = without_ == Without::kMapAsItIs ? s.merges_with : s.epoch;
    if (!Log(&next, lane, kMap, epoch)) return;
    Adopt(&next.mine[lane], lane, epoch);
    next.merging = static_cast<uint8_t>(lane + 1 < kLanes ? s.merging + 1 : 0);
    space->Add(next);
  }

  // The copy takes over. The other server tells it of a decision that it does not know to be heard;
  // it tells the other server likewise.
  void Die(const State& s, Space* space) const {
    State next = s;
    next.dead = 1;
    uint8_t& epoch = next.copys_epoch;
    const bool told = s.back == kDecided || s.back == kTold;
    if (told) epoch = 2;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (told || without_ != Without::kAllAtTakeOver) Adopt(&next.copy[lane], lane, epoch);
    }
    const bool tells = s.others_epoch == 0 && epoch == 1;
    if (tells) next.other = {kHere, s.on_way};
    const bool theirs = tells || s.others_epoch == 1;  // an attempt that is under way is given up
    const int serving = Serving(next.copy) + (theirs ? 1 : 0);
    if (serving > 1) space->Fail("two serve the shard");
    if (serving < 1) space->Fail("nobody serves the shard");
    for (const OneLane& lane : next.copy) {
      if (lane.shard == kHere && (s.answered & ~lane.rows) != 0)
        space->Fail("an acknowledged push is lost");
    }
    if (theirs && (s.answered & ~next.other.rows) != 0) space->Fail("an acknowledged push is lost");
    space->Add(next);
  }

  const Without without_;
  const size_t to_;
  size_t came_back_ = 0;
};

std::string Explored(Without rule, size_t to) {
  LanesModel model(rule, to);
  LanesModel::Space space;
  const std::string wrong = space.Explore(LanesModel::First(), model);
  if (rule == Without::kNothing) {
    EXPECT_GT(model.came_back(), 0u);
    std::printf("back to lane %zu: %zu states\n", to, space.states());
  }
  return wrong;
}

TEST(LanesModelTest, NoOrderOfTwoLogsLosesAShardThatComesBackToItsLane) {
  EXPECT_EQ(Explored(Without::kNothing, kFirst), "");
}

TEST(LanesModelTest, NoOrderOfTwoLogsLosesAShardThatComesBackToAnotherLane) {
  EXPECT_EQ(Explored(Without::kNothing, 1 - kFirst), "");
}

TEST(LanesModelTest, EveryRuleIsNeeded) {
  EXPECT_EQ(Explored(Without::kOwnLog, kFirst), "a copy refuses what its primary tells");
  EXPECT_EQ(Explored(Without::kMapAsItIs, kFirst), "two serve the shard");
  EXPECT_NE(Explored(Without::kConfirmedDecision, kFirst), "");
  EXPECT_NE(Explored(Without::kConfirmedArrival, kFirst), "");
  EXPECT_EQ(Explored(Without::kAllAtTakeOver, kFirst), "nobody serves the shard");
}

}  // namespace
}  // namespace shoal::ps
