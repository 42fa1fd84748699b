// The examples of a worker that an exchange replays (replay.h): how many, and what an example of
// several classes is for each of them.
//
// Used by training.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "data/examples/examples.h"
#include "learn/sparse/exchange/state_table.h"
#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {

// Working memory of one thread.
struct ReplayScratch {
  std::vector<uint32_t> places;  // a row of one of several classes
  std::vector<float> margins;    // of the classes
  std::vector<float> floats;
};

// Of how many examples a sample of `set`, which is not empty, consists at least: examples of few
// features are cheap to replay, and a sample of few of them says little (ADR 351).
uint64_t LeastReplayed(const data::ExampleSet& set, uint32_t classes);

// Which of the latest examples of a round of `trained`, of which `known` are at hand, are replayed:
// `count` of them, every `step`-th from the last one, each for `weight` examples.
struct ReplaySample {
  uint64_t count = 0;
  uint64_t step = 1;
  float weight = 1;
};
// A sixteenth of the round, or at least `least`. With `brief` fewer than that of longer rounds, as
// others wait: least²/trained.
ReplaySample SampleOf(uint64_t trained, uint64_t known, uint64_t least, bool brief);

// StateTable::Expect and Replay of an example of the trainer, whose label is its class's number.
void ExpectExample(const WorkerSetup& setup, StateTable* table, const Row& row,
                   ReplayScratch* scratch);
void ReplayExample(const WorkerSetup& setup, StateTable* table, const Replayed& example,
                   ReplayScratch* scratch);

}  // namespace shoal::learn::sparse
