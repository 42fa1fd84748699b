// The state of every feature (learner.h) in this worker's memory, and its exchange with the
// parameter servers: L is what the threads train, B what the servers had when they last met. A
// round pushes L − B of every row that differs; the servers add, and what they answer is L and B
// from then on (docs/adr/0030).
//
// A row on the servers is the state of a few features side by side, about half a KiB; a bias is one
// feature more, behind the last.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "learn/sparse/learner.h"
#include "ps/client.h"

namespace shoal::learn::sparse {

class StateTable {
 public:
  // `width`: floats of state a feature. `client` (not owned) may be null: then there is nothing to
  // meet. ResourceExhausted where memory is.
  static Result<std::unique_ptr<StateTable>> Make(ps::Client* client, uint64_t features,
                                                  uint32_t width);
  ~StateTable();

  uint64_t features() const { return features_; }
  float* state() { return local_; }
  const float* state() const { return local_; }
  float* bias() { return local_ + width_ * features_; }
  const float* bias() const { return local_ + width_ * features_; }

  // Makes the table on the servers, or finds it, and takes over what they have; before any
  // Exchange. Not to be called twice.
  Status Connect();
  // After server `server` came back without what was pushed since its last checkpoint: asks what
  // the rows that are its own by now have become, so that the next Exchange tells it all that this
  // worker has beyond. No thread may train or exchange meanwhile.
  Status Rebase(int server);
  bool connected() const { return base_ != nullptr; }
  // Has what this worker has changed damped before it is pushed, as one of so many workers that
  // train the same (learner.h). 1 worker: pushed as it is.
  void SetDamping(const Learner* learner, int workers);
  // Meets the servers with part `part` of `parts` of the rows. No thread may train meanwhile; parts
  // may go in parallel. `all`: rows that this worker never changed too.
  Status Exchange(size_t part, size_t parts, bool all);

 private:
  struct Piece;
  StateTable(ps::Client* client, uint64_t features, uint32_t width);
  float* Allocate() const;
  // Rows [first, end): what must be asked and told.
  void Fill(uint64_t first, uint64_t end, bool all, Piece* piece);
  Status Issue(Piece* piece);
  Status Finish(Piece* piece);

  ps::Client* const client_;
  const uint64_t features_;
  const uint64_t width_;
  const uint64_t row_features_;
  const uint64_t row_floats_;
  const uint64_t rows_;
  ps::TableRef table_;
  const Learner* damper_ = nullptr;  // not owned; null: changes are pushed as they are
  float others_ = 0;
  float* local_ = nullptr;     // [rows_ × row_floats_]
  float* base_ = nullptr;      // likewise; null until connected
  std::vector<uint8_t> used_;  // by row: this worker has changed it at some time
};

}  // namespace shoal::learn::sparse
