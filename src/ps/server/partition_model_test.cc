// A model of a shard's moves, explored exhaustively: the rules of docs/design/partition.md for one
// shard, two servers that give it to each other, and two clients with a push each, under every
// order of messages, broken connections, given-up attempts and deaths of the target. And the same
// with one rule left out: then the explorer must find what goes wrong, else it proves nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

namespace shoal::ps {
namespace {

constexpr int kServers = 2;
constexpr int kClients = 2;
constexpr int kSeqs = 4;  // requests of one client to one server; longer histories are not explored

// A rule that is left out.
enum class Without {
  kNothing,
  kRefusalsRemembered,  // a refused request that comes again is taken for an applied one
  kAppliedRemembered,   // an applied request that comes again, when the shard has left, is refused
  kDirtyRows,           // rows that have changed since they were copied are not copied again
  kStandingStill,       // the shard is served while its last rows are on their way
  kArrivalFirst,        // the owner decides before the other one has said that it has all rows
  kOneDecider,          // the other one serves as soon as it has the rows
  kAttempts,            // rows of an attempt that was given up count for the next one
};

enum ShardIs : uint8_t { kElsewhere, kHere, kArriving, kLeaving };
enum Phase : uint8_t { kIdle, kCopying, kFrozen, kDecided };
enum Wire : uint8_t { kNothing, kRequest, kAcked, kRefused };

// Everything in bytes, so that a state is compared and hashed as it lies.
struct Server {
  uint8_t shard = kElsewhere;
  uint8_t epoch = 0;                        // of the map that it goes by
  uint8_t told = 0;                         // of the map that it tells
  uint8_t attempt = 0;                      // that rows arrive in
  std::array<uint8_t, kClients> rows{};     // how often each client's push is in them
  std::array<uint8_t, kClients> last{};     // last sequence number
  std::array<uint8_t, kClients> refused{};  // which of them were refused, a bit each
};

struct State {
  std::array<Server, kServers> s{};
  // The move under way; its owner is the server that has the shard.
  uint8_t phase = kIdle;
  uint8_t from = 0;
  uint8_t dirty = 0;
  uint8_t attempts = 0;
  // Rows on their way, of at most two attempts.
  std::array<uint8_t, 2> wire_attempt{};  // 0: none
  std::array<std::array<uint8_t, kClients>, 2> wire_rows{};
  // Clients.
  std::array<uint8_t, kClients> knows{};  // epoch; the owner follows from it
  std::array<uint8_t, kClients> at{};     // where its request is
  std::array<uint8_t, kClients> wire{};
  std::array<uint8_t, kClients> answered{};
  std::array<std::array<uint8_t, kServers>, kClients> seq{};
  uint8_t breaks = 0, deaths = 0;
};
static_assert(std::has_unique_object_representations_v<State>);

struct Limits {
  int attempts, breaks, deaths;
};

class Explorer {
 public:
  Explorer(Without without, Limits limits) : without_(without), limits_(limits) {}

  std::string Explore() {
    State first;
    first.s[0].shard = kHere;
    Add(first);
    while (!open_.empty() && wrong_.empty()) {
      const State state = open_.back();
      open_.pop_back();
      for (size_t c = 0; c < kClients; ++c) ClientSteps(state, c);
      MoveSteps(state);
      WireSteps(state);
    }
    return wrong_;
  }
  size_t states() const { return seen_.size(); }
  size_t moved_and_answered() const { return moved_and_answered_; }

 private:
  // CutInterval n: the shard has moved n times, to and fro.
  static size_t OwnerOf(uint8_t epoch) { return epoch % kServers; }

  void Add(const State& state) {
    std::string key(reinterpret_cast<const char*>(&state), sizeof state);
    if (!seen_.insert(std::move(key)).second) return;
    Check(state);
    moved_and_answered_ += state.answered[0] && state.answered[1] && state.s[0].told > 0;
    open_.push_back(state);
  }
  void Fail(const char* what) {
    if (wrong_.empty()) wrong_ = what;
  }
  // Whoever serves the shard has every acknowledged push once.
  void Check(const State& state) {
    for (const Server& server : state.s) {
      if (server.shard != kHere) continue;
      for (size_t c = 0; c < kClients; ++c) {
        if (state.answered[c] && server.rows[c] == 0) Fail("an acknowledged push is lost");
        if (server.rows[c] > 1) Fail("a push is applied twice");
      }
    }
  }

  // --- A client ---

  void ClientSteps(const State& state, size_t c) {
    if (state.answered[c]) return;
    const size_t at = state.at[c];
    if (state.wire[c] == kNothing) {
      Learn(state, c);
      const size_t to = OwnerOf(state.knows[c]);
      if (state.seq[c][to] + 1 >= kSeqs) return;
      State next = state;
      next.at[c] = static_cast<uint8_t>(to);
      ++next.seq[c][to];
      next.wire[c] = kRequest;
      Add(next);
      return;
    }
    if (state.wire[c] == kRequest) {
      State next = state;
      next.wire[c] = Handle(&next, &next.s[at], c);
      Add(next);
    } else {
      State next = state;
      next.answered[c] = state.wire[c] == kAcked;
      next.wire[c] = kNothing;
      Add(next);
    }
    if (state.breaks < limits_.breaks) {
      State next = state;
      ++next.breaks;
      next.wire[c] = kRequest;  // once more, under its number
      Add(next);
    }
  }

  void Learn(const State& state, size_t c) {
    for (const Server& server : state.s) {
      if (server.told <= state.knows[c]) continue;
      State next = state;
      next.knows[c] = server.told;
      Add(next);
    }
  }

  uint8_t Handle(State* state, Server* server, size_t c) {
    const uint8_t seq = state->seq[c][state->at[c]];
    const auto bit = static_cast<uint8_t>(1 << seq);
    const bool serves = server->shard == kHere ||
                        (server->shard == kLeaving && without_ == Without::kStandingStill);
    if (seq <= server->last[c]) {
      if ((server->refused[c] & bit) != 0) return kRefused;
      return !serves && without_ == Without::kAppliedRemembered ? kRefused : kAcked;
    }
    server->last[c] = seq;
    if (!serves) {
      if (without_ != Without::kRefusalsRemembered) server->refused[c] |= bit;
      return kRefused;
    }
    ++server->rows[c];
    if (state->phase != kIdle && server == &state->s[state->from]) state->dirty = 1;
    return kAcked;
  }

  // --- The owner ---

  static bool Send(State* state) {
    auto& wires = state->wire_attempt;
    // Rows of this attempt that have not come yet are in the later ones, too: a connection keeps
    // order.
    const size_t i =
        wires[0] == state->attempts || (wires[1] != state->attempts && wires[0] == 0) ? 0 : 1;
    if (wires[i] != 0 && wires[i] != state->attempts) return false;
    wires[i] = state->attempts;
    state->wire_rows[i] = state->s[state->from].rows;
    return true;
  }
  static bool UnderWay(const State& state) {
    return state.wire_attempt[0] == state.attempts || state.wire_attempt[1] == state.attempts;
  }

  void MoveSteps(const State& state) {
    for (size_t i = 0; i < kServers && state.phase == kIdle; ++i) {
      if (state.s[i].shard == kHere && OwnerOf(state.s[i].epoch) == i) Begin(state, i);
    }
    if (state.phase == kIdle) return;
    const Server& owner = state.s[state.from];
    const Server& other = state.s[1 - state.from];
    if (state.phase == kCopying) {
      State next = state;
      next.s[next.from].shard = kLeaving;
      next.phase = kFrozen;
      if (state.dirty && without_ != Without::kDirtyRows && !Send(&next)) return;
      next.dirty = 0;
      Add(next);
    }
    if (state.phase == kCopying || state.phase == kFrozen) {
      State next = state;  // given up
      next.s[next.from].shard = kHere;
      next.phase = kIdle;
      Add(next);
    }
    const bool arrived =
        other.shard == kArriving && other.attempt == state.attempts && !UnderWay(state);
    if (state.phase == kFrozen && (arrived || without_ == Without::kArrivalFirst)) {
      State next = state;
      next.s[next.from].shard = kElsewhere;
      next.s[next.from].epoch = static_cast<uint8_t>(owner.epoch + 1);
      next.s[next.from].rows = {};
      next.phase = kDecided;
      Add(next);
    }
    if (state.phase == kDecided) Tell(state);
  }

  void Begin(const State& state, size_t i) {
    if (state.attempts >= limits_.attempts) return;
    State next = state;
    next.from = static_cast<uint8_t>(i);
    next.phase = kCopying;
    next.dirty = 0;
    ++next.attempts;
    if (!Send(&next)) return;
    Add(next);
  }

  void Tell(const State& state) {
    State next = state;
    Server &mine = next.s[next.from], &other = next.s[1 - next.from];
    other.epoch = mine.epoch;
    other.shard = kHere;
    other.told = mine.told = mine.epoch;
    next.phase = kIdle;
    Add(next);
  }

  // --- Rows on their way, and the death of the one that gets them ---

  void WireSteps(const State& state) {
    const size_t to = 1 - state.from;
    for (size_t i = 0; i < 2; ++i) {
      const uint8_t attempt = state.wire_attempt[i];
      if (attempt == 0) continue;
      State next = state;
      next.wire_attempt[i] = 0;
      next.wire_rows[i] = {};
      Server& server = next.s[to];
      const bool late = attempt < server.attempt && without_ != Without::kAttempts;
      if (server.shard != kHere && server.shard != kLeaving && !late) {
        server.shard = kArriving;
        server.attempt = std::max(server.attempt, attempt);
        server.rows = state.wire_rows[i];
        const bool all = state.phase == kFrozen && attempt == state.attempts;
        if (all && without_ == Without::kOneDecider) {
          server.shard = kHere;
          server.epoch = server.told = static_cast<uint8_t>(state.s[state.from].epoch + 1);
        }
      }
      Add(next);
    }
    // It comes back without what was arriving; the connections are gone.
    if (state.deaths < limits_.deaths && state.s[to].shard == kArriving &&
        state.phase != kDecided) {
      State next = state;
      ++next.deaths;
      next.s[to].shard = kElsewhere;
      next.s[to].rows = {};
      next.wire_attempt = {};
      next.wire_rows = {};
      Add(next);
    }
  }

  const Without without_;
  const Limits limits_;
  std::unordered_set<std::string> seen_;
  std::vector<State> open_;
  std::string wrong_;
  size_t moved_and_answered_ = 0;
};

TEST(PartitionModelTest, NoOrderOfEventsLosesAnAcknowledgedPushOrAppliesOneTwice) {
  std::vector<Limits> all = {{1, 1, 1}, {2, 0, 1}};
  // The slow lane's: ten times as many states and more.
  if (std::getenv("SHOAL_DEEP") != nullptr)
    all.insert(all.end(), {{2, 1, 0}, {3, 0, 0}, {2, 1, 1}});
  for (const Limits limits : all) {
    Explorer explorer(Without::kNothing, limits);
    EXPECT_EQ(explorer.Explore(), "");
    EXPECT_GT(explorer.moved_and_answered(), 0u);
    std::printf("%d attempts, %d breaks, %d deaths: %zu states\n", limits.attempts, limits.breaks,
                limits.deaths, explorer.states());
  }
}

std::string WrongWithout(Without rule, Limits limits) { return Explorer(rule, limits).Explore(); }

TEST(PartitionModelTest, EveryRuleIsNeeded) {
  EXPECT_EQ(WrongWithout(Without::kRefusalsRemembered, {1, 1, 0}), "an acknowledged push is lost");
  EXPECT_EQ(WrongWithout(Without::kAppliedRemembered, {1, 1, 0}), "a push is applied twice");
  EXPECT_EQ(WrongWithout(Without::kDirtyRows, {1, 0, 0}), "an acknowledged push is lost");
  EXPECT_EQ(WrongWithout(Without::kStandingStill, {1, 0, 0}), "an acknowledged push is lost");
  EXPECT_EQ(WrongWithout(Without::kArrivalFirst, {1, 0, 0}), "an acknowledged push is lost");
  EXPECT_EQ(WrongWithout(Without::kOneDecider, {1, 0, 0}), "an acknowledged push is lost");
  EXPECT_EQ(WrongWithout(Without::kAttempts, {2, 0, 0}), "an acknowledged push is lost");
}

}  // namespace
}  // namespace shoal::ps
