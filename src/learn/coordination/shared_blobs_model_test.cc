// Exhaustive exploration of the protocol by which workers share one worker's decision: the first
// server may lose all blobs and workers may die at any moment, and yet all workers get the same
// answer. Each step is one request of part_assignment.cc, vocabulary_phase.cc or shared_blobs.cc.
#include <gtest/gtest.h>

#include "ps/testing/test_explorer.h"

namespace shoal::learn {
namespace {

constexpr int kWorkers = 3;

enum Phase : uint8_t { kAsks, kDecides, kKnows, kEnded };

struct State {
  struct Worker {
    uint8_t phase = kAsks;
    uint8_t answer = 0;   // the answer it knows
    uint8_t tells = 0;    // a server restarted since it published
    uint8_t forgets = 0;  // it still has to remove the requests
  } workers[kWorkers];
  uint8_t answer = 0;  // on the server; 0: none
  uint8_t asked = 0;   // the workers' requests on the server
  uint8_t decided = 0;
  uint8_t losses = 0;
  uint8_t deaths = 0;
};

class Model {
 public:
  Model(bool tells_again, bool skips_ended) : tells_(tells_again), skips_(skips_ended) {}

  void Steps(const State& state, ps::StateSpace<State>* space) {
    for (int worker = 0; worker < kWorkers; ++worker) {
      Work(state, worker, space);
      Die(state, worker, space);
      Check(state, worker, space);
    }
    if (state.losses < 2) {
      State next = state;
      ++next.losses;
      next.answer = next.asked = 0;
      for (State::Worker& one : next.workers) one.tells = tells_ && one.phase == kKnows;
      space->Add(next);
    }
  }

  void AtEnd(const State& state, ps::StateSpace<State>* space) {
    for (const State::Worker& one : state.workers) {
      if (one.phase != kEnded) space->Fail("a worker waits for ever");
    }
  }

 private:
  static bool DecidesForAll(const State& state, int worker) {
    for (int other = 0; other < worker; ++other) {
      if (state.workers[other].phase != kEnded) return false;
    }
    return true;
  }

  bool AllHaveAsked(const State& state) const {
    for (int worker = 0; worker < kWorkers; ++worker) {
      const bool skipped = skips_ && state.workers[worker].phase == kEnded;
      if ((state.asked >> worker & 1) == 0 && !skipped) return false;
    }
    return true;
  }

  void Work(const State& state, int worker, ps::StateSpace<State>* space) const {
    State next = state;
    State::Worker& one = next.workers[worker];
    switch (one.phase) {
      case kAsks:
        if (state.answer != 0) {
          one.phase = kKnows;
          one.answer = state.answer;
        } else if ((state.asked >> worker & 1) == 0) {
          next.asked |= static_cast<uint8_t>(1 << worker);
        } else if (DecidesForAll(state, worker) && AllHaveAsked(state)) {
          one.phase = kDecides;  // it has seen the list; the next step is another request
        } else {
          return;
        }
        return space->Add(next);
      case kDecides:
        next.answer = one.answer = ++next.decided;
        one.phase = kKnows;
        one.forgets = 1;
        return space->Add(next);
      case kKnows:
        return Go(state, worker, space);
      default:
        return;
    }
  }

  // The worker knows the answer: it trains, republishes to a restarted server, and ends; the first
  // worker ends last.
  static void Go(const State& state, int worker, ps::StateSpace<State>* space) {
    if (state.workers[worker].forgets != 0) {
      State next = state;
      next.asked = next.workers[worker].forgets = 0;
      space->Add(next);
    }
    if (state.workers[worker].tells != 0) {
      State next = state;
      next.answer = state.workers[worker].answer;
      next.workers[worker].tells = 0;
      space->Add(next);
    }
    for (int other = 1; worker == 0 && other < kWorkers; ++other) {
      if (state.workers[other].phase != kEnded) return;
    }
    State next = state;
    next.workers[worker].phase = kEnded;
    next.workers[worker].tells = next.workers[worker].forgets = 0;
    space->Add(next);
  }

  static void Die(const State& state, int worker, ps::StateSpace<State>* space) {
    if (state.deaths == 2 || state.workers[worker].phase == kEnded) return;
    State next = state;
    ++next.deaths;
    next.workers[worker] = {};
    space->Add(next);
  }

  static void Check(const State& state, int worker, ps::StateSpace<State>* space) {
    const State::Worker& one = state.workers[worker];
    for (const State::Worker& other : state.workers) {
      if (one.phase == kKnows && other.phase == kKnows && one.answer != other.answer)
        space->Fail("two workers know different answers");
    }
  }

  const bool tells_;
  const bool skips_;
};

TEST(SharedBlobsModel, AllWorkersGetOneAnswer) {
  ps::StateSpace<State> space;
  Model model(true, true);
  EXPECT_EQ(space.Explore({}, model), "");
  EXPECT_GT(space.states(), 1000u);
}

TEST(SharedBlobsModel, WithoutRepublishingAWorkerWaitsForever) {
  ps::StateSpace<State> space;
  Model model(false, true);
  EXPECT_EQ(space.Explore({}, model), "a worker waits for ever");
}

TEST(SharedBlobsModel, WaitingForEndedWorkersNeverEnds) {
  ps::StateSpace<State> space;
  Model model(true, false);
  EXPECT_EQ(space.Explore({}, model), "a worker waits for ever");
}

}  // namespace
}  // namespace shoal::learn
