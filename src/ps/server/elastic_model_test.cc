// Models of what happens around servers that come and go, each explored exhaustively, with its rule
// and without: a checkpoint while a server gives its last shard away, a server that comes back
// while its neighbour is quick, a server that leaves (docs/design/partition.md, replication.md).
// Each rule mends a fault that was seen in the wild; left out, the explorer must find that fault.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "ps/testing/test_explorer.h"

namespace shoal::ps {
namespace {

// --- A checkpoint, a worker with two pushes, and a shard that goes from server 0 to server 1 ---

constexpr uint8_t kPushes = 2;
// A rule that is left out.
enum class Without {
  kNothing,
  kDeferredMarkers,  // a worker's marker does not wait for what was refused
  kSettled,          // nobody waits until the worker's markers are answered
  kLateIsSaid,       // nor asks what else has come by then
};
enum Frame : uint8_t { kNone, kPush, kMarker };

struct CutServer {
  uint8_t here = 0;    // the shard
  uint8_t rows = 0;    // pushes in it
  uint8_t asked = 0;   // to cut
  uint8_t open = 0;    // its part of the cut: 1 + whether the shard was here
  uint8_t marked = 0;  // the worker's marker has come: the part is complete
  uint8_t cut = 0;     // pushes in the part
  uint8_t torn = 0;
  std::array<uint8_t, 4> to{};  // frames on their way from the worker, in order
};

struct CutState {
  std::array<CutServer, 2> s{};
  uint8_t issued = 0;                // by the worker: pushes
  uint8_t again = 0;                 // refused, to be sent to server 1
  std::array<uint8_t, 2> answers{};  // refusals on their way: of before the marker, of behind it
  uint8_t knows = 0;                 // which server has the shard, as the worker thinks
  uint8_t counted = 0;               // progress when the marker was sent
  uint8_t markers = 0;               // sent
  uint8_t late = 0;     // a push of before the marker was refused when the other marker was out
  uint8_t settled = 0;  // the markers are answered, and the leader has heard it
  uint8_t begun = 0;    // 1 + the owner as who asks for the checkpoint thinks
  uint8_t ended = 0;
};

class CutModel {
 public:
  using Space = StateSpace<CutState>;
  explicit CutModel(Without without) : without_(without) {}
  static CutState First() {
    CutState first;
    first.s[0].here = 1;
    return first;
  }
  void Steps(const CutState& s, Space* space) {
    if (s.ended != 0) return;
    WorkerSteps(s, space);
    for (size_t i = 0; i < 2; ++i) ServerSteps(s, i, space);
    Move(s, space);
    SendRequest(s, space);
    Commit(s, space);
  }
  void AtEnd(const CutState&, Space*) {}
  size_t committed() const { return committed_; }

 private:
  static bool Send(CutState* s, size_t to, Frame frame) {
    for (size_t i = 0; i < 4; ++i) {
      if (s->s[to].to[i] != kNone) continue;
      s->s[to].to[i] = frame;
      return true;
    }
    return false;
  }

  void WorkerSteps(const CutState& s, Space* space) const {
    CutState next = s;
    if (s.again > 0) {  // before anything new
      --next.again;
      if (Send(&next, 1, kPush)) space->Add(next);
    } else if (s.issued < kPushes) {
      ++next.issued;
      if (Send(&next, s.knows, kPush)) space->Add(next);
    }
    if (s.answers[0] + s.answers[1] > 0) {
      const bool before = s.answers[0] > 0;
      next = s;
      --next.answers[before ? 0 : 1];
      ++next.again;
      next.knows = 1;
      if (before && s.markers != 0) next.late = 1;
      space->Add(next);
    }
    if (s.s[0].marked != 0 && s.s[1].marked != 0 && s.answers[0] == 0) {
      next = s;
      next.settled = 1;
      space->Add(next);
    }
    // What it knows to be refused is sent anew before its marker.
    if (s.begun != 0 && s.markers == 0 && (s.again == 0 || without_ == Without::kDeferredMarkers)) {
      next = s;
      next.markers = 1;
      next.counted = s.issued;
      if (Send(&next, 0, kMarker) && Send(&next, 1, kMarker)) space->Add(next);
    }
  }

  static void Open(CutServer* server) {
    if (server->open == 0) server->open = static_cast<uint8_t>(1 + server->here);
  }

  void ServerSteps(const CutState& s, size_t i, Space* space) const {
    const Frame frame = static_cast<Frame>(s.s[i].to[0]);
    if (frame == kNone) return;
    CutState next = s;
    CutServer& server = next.s[i];
    for (size_t k = 0; k + 1 < 4; ++k) server.to[k] = server.to[k + 1];
    server.to[3] = 0;
    if (frame == kMarker) {
      Open(&server);
      server.marked = 1;
    } else if (server.here != 0) {
      ++server.rows;
      if (server.marked == 0) ++server.cut;
    } else {
      ++next.answers[server.marked];
    }
    space->Add(next);
  }

  // A lane's shards do not leave while its part of a cut is open.
  static void Move(const CutState& s, Space* space) {
    if (s.s[0].here == 0 || s.s[0].open != 0) return;
    CutState next = s;
    next.s[0].here = 0;
    next.s[1].here = 1;
    next.s[1].rows = s.s[0].rows;
    next.s[1].cut = s.s[0].rows;  // all of them came before a marker did
    next.s[0].cut = 0;
    next.s[1].torn |= s.s[1].open != 0;
    space->Add(next);
  }

  static void SendRequest(const CutState& s, Space* space) {
    if (s.begun == 0) {
      for (uint8_t owner = 0; owner < 2; ++owner) {
        if (owner > s.s[1].here) continue;  // nobody knows of what has not happened
        CutState next = s;
        next.begun = static_cast<uint8_t>(1 + owner);
        space->Add(next);
      }
      return;
    }
    for (size_t i = 0; i < 2; ++i) {
      if (!IsAsked(s, i) || s.s[i].asked != 0) continue;
      CutState next = s;
      next.s[i].asked = 1;
      Open(&next.s[i]);
      space->Add(next);
    }
  }
  // Server 1 has other shards from the beginning; server 0 had only this one, leaves then, and may
  // let nobody in any more.
  static bool IsAsked(const CutState& s, size_t i) { return i == 1 || s.begun == 1; }

  void Commit(const CutState& s, Space* space) {
    if (s.begun == 0) return;
    if (s.settled == 0 && without_ != Without::kSettled) return;
    if (s.late != 0 && without_ != Without::kLateIsSaid) return;  // cut again
    uint8_t held = 0, rows = 0;
    for (size_t i = 0; i < 2; ++i) {
      if (!IsAsked(s, i)) continue;
      const CutServer& server = s.s[i];
      if (server.asked == 0 || server.marked == 0) return;
      if (server.torn != 0) return;  // cut again
      held = static_cast<uint8_t>(held + server.open - 1);
      if (server.open == 2) rows = server.cut;
    }
    if (held != 1) return;
    if (rows < s.counted) space->Fail("a checkpoint lacks a push that was counted");
    ++committed_;
    CutState next = s;
    next.ended = 1;
    space->Add(next);
  }

  const Without without_;
  size_t committed_ = 0;
};

TEST(ElasticModelTest, ACheckpointHasWhatWasCounted) {
  CutModel model(Without::kNothing);
  CutModel::Space space;
  EXPECT_EQ(space.Explore(CutModel::First(), model), "");
  EXPECT_GT(model.committed(), 0u);
  std::printf("checkpoint: %zu states\n", space.states());
  for (const Without rule : {Without::kDeferredMarkers, Without::kSettled, Without::kLateIsSaid}) {
    CutModel without(rule);
    CutModel::Space other;
    EXPECT_EQ(other.Explore(CutModel::First(), without),
              "a checkpoint lacks a push that was counted")
        << static_cast<int>(rule);
  }
}

// --- Server 2 comes back; server 0 keeps its rows; server 1 had a copy of its own at the
// incarnation before, under the same address, and holds a push until it has another ---

struct BackState {
  uint8_t names = 0;     // server 2's view names server 1
  uint8_t keeper = 0;    // server 0 knows of the new incarnation
  uint8_t other = 0;     // server 1 does
  uint8_t served = 0;    // server 2's rows are with it again, as a copy
  uint8_t answered = 0;  // server 1's push
};

class BackModel {
 public:
  using Space = StateSpace<BackState>;
  explicit BackModel(bool tells_all) : tells_all_(tells_all) {}
  void Steps(const BackState& s, Space* space) const {
    const auto add = [&](uint8_t BackState::*what) {
      if (s.*what != 0) return;
      BackState next = s;
      next.*what = 1;
      space->Add(next);
    };
    add(&BackState::names);
    // It asks how many founded the job, or claims its rows.
    add(&BackState::keeper);
    if (s.keeper != 0) add(&BackState::served);
    if (s.names != 0 && (s.served == 0 || tells_all_)) add(&BackState::other);
    if (s.other != 0) add(&BackState::answered);
  }
  void AtEnd(const BackState& s, Space* space) const {
    if (s.answered == 0) space->Fail("a push waits for ever");
  }

 private:
  const bool tells_all_;
};

TEST(ElasticModelTest, AServerThatIsBackTellsEverybody) {
  BackModel model(true), without(false);
  BackModel::Space space, other;
  EXPECT_EQ(space.Explore({}, model), "");
  EXPECT_EQ(other.Explore({}, without), "a push waits for ever");
}

// --- Server 1 gives its shard to server 2 and leaves; a client comes and asks the leader ---

struct LeaveState {
  uint8_t decided = 0, told = 0;  // the move; server 2 has heard of it
  uint8_t leader = 0;             // the leader has
  uint8_t balanced = 0;  // who balances has told it, or has given up: something was refused
  uint8_t gone = 0;
  uint8_t client = 0;  // 1 + the server that the leader has named
};

class LeaveModel {
 public:
  using Space = StateSpace<LeaveState>;
  explicit LeaveModel(bool tells_others) : tells_others_(tells_others) {}
  void Steps(const LeaveState& s, Space* space) const {
    LeaveState next = s;
    if (s.decided == 0) {
      next.decided = 1;
      space->Add(next);
    } else if (s.told == 0) {
      next.told = 1;
      space->Add(next);
    }
    if (s.told != 0 && s.balanced == 0) {
      for (const uint8_t heard : {uint8_t{0}, uint8_t{1}}) {
        next = s;
        next.balanced = 1;
        next.leader |= heard;
        space->Add(next);
      }
    }
    if (tells_others_ && s.told != 0 && s.gone == 0 && s.leader == 0) {
      next = s;
      next.leader = 1;
      space->Add(next);
    }
    if (s.told != 0 && s.gone == 0 && (s.leader != 0 || !tells_others_)) {
      next = s;
      next.gone = 1;
      space->Add(next);
    }
    ClientComes(s, space);
  }
  void AtEnd(const LeaveState&, Space*) const {}

 private:
  // A server that is there and has given its shard away says who has it.
  static void ClientComes(const LeaveState& s, Space* space) {
    LeaveState next = s;
    if (s.client == 0) {
      next.client = static_cast<uint8_t>(s.leader != 0 ? 3 : 2);
    } else if (s.client == 2 && s.decided != 0) {
      if (s.gone != 0 && s.leader == 0) space->Fail("a client is sent to a server that has gone");
      next.client = s.gone != 0 ? uint8_t{0} : uint8_t{3};
    } else {
      return;
    }
    space->Add(next);
  }

  const bool tells_others_;
};

TEST(ElasticModelTest, AServerThatLeavesTellsTheLeaderWhoHasItsRows) {
  LeaveModel model(true), without(false);
  LeaveModel::Space space, other;
  EXPECT_EQ(space.Explore({}, model), "");
  EXPECT_EQ(other.Explore({}, without), "a client is sent to a server that has gone");
}

}  // namespace
}  // namespace shoal::ps
