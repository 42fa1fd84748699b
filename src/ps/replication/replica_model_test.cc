// A model of replication, explored exhaustively: the rules of docs/design/replication.md for one
// seat on three processes, with two clients, under every order of messages, crashes, broken
// streams, wrong suspicions and late news. And the same with one rule left out: then the explorer
// must find what goes wrong, else it proves nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

namespace shoal::ps {
namespace {

constexpr int kProcesses = 3;
constexpr int kClients = 2;
constexpr int kLog = 6;  // entries of one copy; longer histories are not explored

// A rule that is left out.
enum class Without {
  kNothing,
  kHeldAnswers,      // a primary answers before its backup has confirmed
  kWholeCopies,      // a copy takes over although it is not whole
  kSequences,        // the backup does not know what each client has sent
  kConfirmedDeaths,  // a primary goes on alone because the stream broke
  kHoldBeforePair,   // the backup is told that it is whole before answers wait for it
  kOwnDeath,         // who is declared dead takes over nevertheless
};

enum Role : uint8_t { kNone, kPrimary, kCopy };
enum Stage : uint8_t { kAlone, kCopying, kTold, kPaired };
enum EntryType : uint8_t { kPush, kRows, kWhole };

// Everything in bytes, so that a state is compared and hashed as it lies.
struct Process {
  uint8_t up = 1;
  uint8_t role = kNone;
  uint8_t epoch = 0;
  uint8_t view = 0;                      // declarations of death that it knows
  std::array<uint8_t, kClients> rows{};  // how often each client's push is in the rows
  std::array<uint8_t, kClients> last{};  // last sequence number of each client
  std::array<uint8_t, kClients> held{};  // 1 + position that the answer waits for
  // A primary's.
  uint8_t stage = kAlone;
  uint8_t backup = 0;
  uint8_t linked = 0;
  uint8_t end = 0, confirmed = 0, goal = 0;
  std::array<uint8_t, kLog> type{};
  std::array<uint8_t, kLog> what{};  // a client; or the rows, two bits each
  // A copy's.
  uint8_t from = 0;
  uint8_t copied = 0;
  uint8_t whole = 0;
};

struct State {
  std::array<Process, kProcesses> p{};
  std::array<uint8_t, kClients> at{};          // whom the client is connected to
  std::array<uint8_t, kClients> asked{};       // over this connection
  std::array<uint8_t, kClients> answered{};    // an answer left; the push is acknowledged
  std::array<uint8_t, kProcesses> declared{};  // the dead, in the order of Members' views
  uint8_t declarations = 0;
  uint8_t crashes = 0, breaks = 0, suspicions = 0;
};
static_assert(std::has_unique_object_representations_v<State>);

struct Limits {
  int crashes, breaks, suspicions;
};

class Explorer {
 public:
  Explorer(Without without, Limits limits) : without_(without), limits_(limits) {}

  // The first thing that went wrong; empty: nothing did, in any order.
  std::string Explore() {
    State first;
    first.p[0].role = kPrimary;
    first.p[0].stage = kPaired;
    first.p[0].backup = 1;
    first.p[0].linked = 1;
    first.p[1].role = kCopy;
    first.p[1].whole = 1;
    Add(first);
    while (!open_.empty() && wrong_.empty()) {
      const State state = open_.back();
      open_.pop_back();
      for (int i = 0; i < kProcesses; ++i) StepsOf(state, i);
      for (int c = 0; c < kClients; ++c) ClientSteps(state, c);
      MembersSteps(state);
    }
    return wrong_;
  }
  size_t states() const { return seen_.size(); }
  size_t takeovers() const { return takeovers_; }
  size_t all_answered() const { return all_answered_; }

 private:
  void Add(const State& state) {
    std::string key(reinterpret_cast<const char*>(&state), sizeof state);
    if (!seen_.insert(std::move(key)).second) return;
    all_answered_ += state.answered[0] && state.answered[1] && state.crashes > 0;
    open_.push_back(state);
  }
  void Fail(const char* what) {
    if (wrong_.empty()) wrong_ = what;
  }

  static bool Knows(const State& s, int who, int dead) {
    for (int i = 0; i < s.p[static_cast<size_t>(who)].view; ++i) {
      if (s.declared[static_cast<size_t>(i)] == dead) return true;
    }
    return false;
  }
  static Process& At(State& s, int i) { return s.p[static_cast<size_t>(i)]; }

  // Every acknowledged push is here, once.
  void CheckComplete(const State& s, const Process& p, const char* what) {
    for (size_t c = 0; c < kClients; ++c) {
      if (s.answered[c] && p.rows[c] == 0) Fail(what);
    }
  }

  static bool Append(Process* p, EntryType type, uint8_t what) {
    if (p->end == kLog) return false;
    p->type[p->end] = type;
    p->what[p->end++] = what;
    return true;
  }
  static uint8_t Packed(const Process& p) {
    return static_cast<uint8_t>(p.rows[0] | p.rows[1] << 2);
  }
  static void ForgetCopy(Process* p) {
    p->end = p->confirmed = p->goal = p->linked = p->backup = 0;
    p->type = {};
    p->what = {};
    p->stage = kAlone;
  }

  // --- A primary and its backup ---

  void StepsOf(const State& s, int i) {
    const Process& p = s.p[static_cast<size_t>(i)];
    if (!p.up) return;
    if (p.view < s.declarations) {
      State next = s;
      Process& mine = At(next, i);
      ++mine.view;
      // Whoever reads of its own death answers nobody any more.
      if (Knows(next, i, i) && without_ != Without::kOwnDeath) {
        const uint8_t view = mine.view;
        mine = {};
        mine.view = view;
      }
      Add(next);
    }
    if (p.role == kCopy) return CopySteps(s, i);
    if (p.role != kPrimary) return;
    for (int c = 0; c < kClients; ++c) Release(s, i, c);
    if (p.stage == kAlone) return FindBackup(s, i);
    StreamSteps(s, i);
    PairSteps(s, i);
  }

  void CopySteps(const State& s, int i) {
    const Process& p = s.p[static_cast<size_t>(i)];
    if (!Knows(s, i, p.from) || (Knows(s, i, i) && without_ != Without::kOwnDeath)) return;
    State next = s;
    Process& mine = At(next, i);
    if (p.whole || without_ == Without::kWholeCopies) {
      ++takeovers_;
      CheckComplete(s, p, "an acknowledged push is lost with the primary");
      mine.role = kPrimary;
      ++mine.epoch;
      if (without_ == Without::kSequences) mine.last = {};
    } else {
      mine.role = kNone;
    }
    mine.copied = mine.whole = mine.from = 0;
    Add(next);
  }

  void Release(const State& s, int i, int c) {
    const auto client = static_cast<size_t>(c);
    const Process& p = s.p[static_cast<size_t>(i)];
    if (!p.held[client] || s.at[client] != i) return;
    const bool waits = p.stage == kPaired && without_ != Without::kHeldAnswers;
    if (waits && (!p.linked || p.confirmed + 1 < p.held[client])) return;
    State next = s;
    next.answered[client] = 1;
    At(next, i).held[client] = 0;
    for (const Process& other : s.p) {
      if (other.up && other.role == kPrimary && other.epoch > p.epoch && !other.rows[client]) {
        Fail("two primaries acknowledge: the later one does not have it");
      }
    }
    Add(next);
  }

  void FindBackup(const State& s, int i) {
    for (int j = 0; j < kProcesses; ++j) {
      const Process& other = s.p[static_cast<size_t>(j)];
      if (j == i || !other.up || Knows(s, i, j) || other.role == kPrimary) continue;
      if (other.role == kCopy && other.whole && other.from != i) continue;
      State next = s;
      Process &mine = At(next, i), &copy = At(next, j);
      mine.stage = kCopying;
      mine.backup = static_cast<uint8_t>(j);
      mine.linked = 1;
      const uint8_t view = copy.view;
      copy = {};
      copy.view = view;
      copy.role = kCopy;
      copy.from = static_cast<uint8_t>(i);
      copy.epoch = mine.epoch;
      copy.last = mine.last;
      Add(next);
    }
  }

  void StreamSteps(const State& s, int i) {
    const Process& p = s.p[static_cast<size_t>(i)];
    const Process& b = s.p[p.backup];
    const bool there = b.up && b.role == kCopy && b.from == i;
    if (Knows(s, i, p.backup) ||
        (without_ == Without::kConfirmedDeaths && !p.linked && p.stage == kPaired)) {
      State next = s;
      CheckComplete(s, p, "a primary goes on alone without an acknowledged push");
      ForgetCopy(&At(next, i));
      ++At(next, i).epoch;
      for (uint8_t& held : At(next, i).held) held = held ? 1 : 0;
      Add(next);
    }
    if (p.linked && there) {
      if (b.copied < p.end) Deliver(s, i);
      if (p.confirmed < b.copied) {
        State next = s;
        At(next, i).confirmed = b.copied;
        Add(next);
      }
    }
    if (p.linked && (s.breaks < limits_.breaks || !there)) {
      State next = s;
      next.breaks = static_cast<uint8_t>(next.breaks + (there ? 1 : 0));
      At(next, i).linked = 0;
      if (p.stage == kCopying) ForgetCopy(&At(next, i));
      Add(next);
    }
    if (!p.linked && there) {
      State next = s;
      At(next, i).linked = 1;
      At(next, i).confirmed = b.copied;
      Add(next);
    }
  }

  void Deliver(const State& s, int i) {
    State next = s;
    const Process& p = s.p[static_cast<size_t>(i)];
    Process& copy = next.p[p.backup];
    const uint8_t what = p.what[copy.copied];
    switch (p.type[copy.copied]) {
      case kPush:
        if (copy.last[what] == 0) {
          copy.last[what] = 1;
          ++copy.rows[what];
        }
        break;
      case kRows:
        copy.rows = {static_cast<uint8_t>(what & 3), static_cast<uint8_t>(what >> 2)};
        break;
      default:
        copy.whole = 1;
    }
    ++copy.copied;
    Add(next);
  }

  void PairSteps(const State& s, int i) {
    const Process& p = s.p[static_cast<size_t>(i)];
    State next = s;
    Process& mine = At(next, i);
    if (p.stage == kCopying && p.goal == 0) {
      if (!Append(&mine, kRows, Packed(p))) return;
      mine.goal = mine.end;
      Add(next);
    } else if (p.stage == kCopying && p.linked && p.confirmed >= p.goal) {
      if (!Append(&mine, kWhole, 0)) return;
      mine.stage = without_ == Without::kHoldBeforePair ? kTold : kPaired;
      Add(next);
    } else if (p.stage == kTold) {
      mine.stage = kPaired;
      Add(next);
    }
  }

  // --- Clients: each has one push, and sends it again over every new connection ---

  void ClientSteps(const State& s, int c) {
    const auto client = static_cast<size_t>(c);
    if (s.answered[client]) return;
    const Process& p = s.p[s.at[client]];
    if (!s.asked[client] && p.up && p.role == kPrimary) SendRequest(s, c);
    for (int j = 0; j < kProcesses; ++j) {
      if (!s.p[static_cast<size_t>(j)].up || s.p[static_cast<size_t>(j)].role != kPrimary) continue;
      const bool broken = !p.up || p.role != kPrimary;
      if (!broken && s.breaks >= limits_.breaks) continue;
      State next = s;
      next.breaks = static_cast<uint8_t>(next.breaks + (broken ? 0 : 1));
      next.p[s.at[client]].held[client] = 0;
      next.at[client] = static_cast<uint8_t>(j);
      next.asked[client] = 0;
      Add(next);
    }
  }

  void SendRequest(const State& s, int c) {
    const auto client = static_cast<size_t>(c);
    State next = s;
    Process& p = next.p[s.at[client]];
    next.asked[client] = 1;
    if (p.last[client] == 0) {
      if (p.stage != kAlone && !Append(&p, kPush, static_cast<uint8_t>(c))) return;
      p.last[client] = 1;
      if (++p.rows[client] > 1) Fail("a push is applied twice");
    }
    p.held[client] = static_cast<uint8_t>(p.end + 1);
    Add(next);
  }

  // --- Crashes, and what Members says of them, right or wrong ---

  void MembersSteps(const State& s) {
    for (int i = 0; i < kProcesses; ++i) {
      const Process& p = s.p[static_cast<size_t>(i)];
      if (p.up && s.crashes < limits_.crashes) {
        State next = s;
        ++next.crashes;
        At(next, i) = {};
        At(next, i).up = 0;
        Add(next);
      }
      bool said = false;
      for (int d = 0; d < s.declarations; ++d) said |= s.declared[static_cast<size_t>(d)] == i;
      if (said || s.declarations == kProcesses - 1 ||
          (p.up && s.suspicions >= limits_.suspicions)) {
        continue;
      }
      State next = s;
      next.suspicions = static_cast<uint8_t>(next.suspicions + (p.up ? 1 : 0));
      next.declared[next.declarations++] = static_cast<uint8_t>(i);
      Add(next);
    }
  }

  const Without without_;
  const Limits limits_;
  std::unordered_set<std::string> seen_;
  std::vector<State> open_;
  std::string wrong_;
  size_t takeovers_ = 0;
  size_t all_answered_ = 0;
};

TEST(ReplicaModelTest, NoOrderOfEventsLosesAnAcknowledgedPushOrAppliesOneTwice) {
  std::vector<Limits> all = {{2, 0, 0}, {1, 1, 0}, {0, 0, 2}};
  // The slow lane's: some hundred times as many states.
  if (std::getenv("SHOAL_DEEP") != nullptr)
    all.insert(all.end(), {{1, 0, 1}, {0, 1, 2}, {1, 1, 1}});
  for (const Limits limits : all) {
    Explorer explorer(Without::kNothing, limits);
    EXPECT_EQ(explorer.Explore(), "");
    EXPECT_GT(explorer.takeovers(), 0u);
    if (limits.crashes > 0) {
      EXPECT_GT(explorer.all_answered(), 0u);
    }
    std::printf("%d crashes, %d breaks, %d wrong suspicions: %zu states\n", limits.crashes,
                limits.breaks, limits.suspicions, explorer.states());
  }
}

std::string WrongWithout(Without rule, Limits limits) { return Explorer(rule, limits).Explore(); }

TEST(ReplicaModelTest, EveryRuleIsNeeded) {
  EXPECT_EQ(WrongWithout(Without::kHeldAnswers, {1, 0, 0}),
            "an acknowledged push is lost with the primary");
  EXPECT_EQ(WrongWithout(Without::kWholeCopies, {2, 0, 0}),
            "an acknowledged push is lost with the primary");
  EXPECT_EQ(WrongWithout(Without::kSequences, {1, 0, 0}), "a push is applied twice");
  EXPECT_NE(WrongWithout(Without::kConfirmedDeaths, {1, 1, 0}), "");
  EXPECT_EQ(WrongWithout(Without::kHoldBeforePair, {2, 0, 0}),
            "an acknowledged push is lost with the primary");
  EXPECT_NE(WrongWithout(Without::kOwnDeath, {0, 0, 2}), "");
}

}  // namespace
}  // namespace shoal::ps
