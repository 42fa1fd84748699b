// The state of every feature (learner.h) in this worker's memory, and its exchange with the
// parameter servers, in three steps: pull the rows, let examples of the round push back at what
// others have changed (replay.h), push. Between two exchanges L is what the threads train and B
// what it began as.
//
// A row on the servers is a few features side by side, about half a KiB, as weights and squares of
// gradients, and the count of the rule `combine` (ps/types.h): of a push that somebody else's has
// overtaken only a share is taken, and the rest stays in L for the next exchange. A bias is one
// feature more, behind the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "learn/sparse/exchange/replay.h"
#include "learn/sparse/learner.h"
#include "ps/client/client.h"

namespace shoal::learn::sparse {

class StateTable {
 public:
  // `client` (not owned) may be null: then there is nothing to meet. `learner` (not owned) outlives
  // the table. ResourceExhausted where memory is.
  static Result<std::unique_ptr<StateTable>> Make(ps::Client* client, uint64_t features,
                                                  const Learner* learner);
  ~StateTable();

  uint64_t features() const { return features_; }
  float* state() { return local_; }
  const float* state() const { return local_; }
  float* bias() { return local_ + width_ * features_; }
  const float* bias() const { return local_ + width_ * features_; }

  // Makes the table on the servers, or finds it, and takes over what they have; before any
  // exchange. Not to be called twice.
  Status Connect();
  // After server `server` came back without what was pushed since its last checkpoint: asks what
  // the rows that are its own by now have become, so that the next exchange tells it all that this
  // worker has beyond. No thread may train or exchange meanwhile.
  Status Rebase(int server);
  bool connected() const { return base_ != nullptr; }

  // Of which rows an exchange is: those that this worker has changed since it last met the servers,
  // that it ever changed, or all.
  enum class RowSet : uint8_t { kChanged, kUsed, kAll };
  // An exchange: Pull and then Push of all parts; no thread may train meanwhile, parts may go in
  // parallel.
  Status Pull(size_t part, size_t parts, RowSet which);
  Status Push(size_t part, size_t parts);
  // What this worker has changed since it last met the servers goes there, where no other worker
  // changes anything: instead of an exchange, for a tenth of its work. Parts as above.
  Status Store(size_t part, size_t parts);
  // Between the two, of `weight` examples like this one.
  void Replay(const Row& row, bool with_bias, float weight, std::vector<float>* scratch);
  // Rows of which the pushes since the last call were not taken whole.
  uint64_t TakePartialPushCount() { return partial_pushes_.exchange(0); }

 private:
  struct Piece;
  struct Range {
    uint64_t begin, end;
  };
  StateTable(ps::Client* client, uint64_t features, const Learner* learner);
  float* Allocate() const;
  bool Differs(uint64_t row) const;
  // A feature's state to what servers have of it, and back.
  void ToWeights(const float* state, float* weights) const;
  void ToState(float* floats) const;
  // What the servers have of a row: brings its features into the form of `merge_`.
  void Merge(uint64_t row, const float* theirs, RowSet which);
  // What is to be pushed of a row; false: nothing.
  bool PushDelta(uint64_t row, float* delta) const;
  // What is to be stored of a row that differs; and what the servers' answer says of it.
  void StoreDelta(uint64_t row, float* delta) const;
  void ApplyStoreAnswer(uint64_t row, const float* answer);
  // The servers' answer to a push of `delta`, or, without one, what was pulled: ends the merge.
  void FinishMerge(uint64_t row, const float* delta, const float* answer);
  template <typename Fill, typename Issue, typename Finish>
  Status InPieces(Range rows, const Fill& fill, const Issue& issue, const Finish& finish);

  ps::Client* const client_;
  const Learner* const learner_;
  const uint64_t features_;
  const uint64_t width_;
  const uint64_t row_features_;
  const uint64_t row_values_;  // floats of its features
  const uint64_t row_floats_;  // and the count
  const uint64_t rows_;
  ps::TableRef table_;
  std::atomic<uint64_t> partial_pushes_{0};
  float* local_ = nullptr;                // [rows_ × row_values_]
  float* base_ = nullptr;                 // likewise; null until connected
  float* shift_ = nullptr;                // likewise
  std::vector<MergeState> merge_states_;  // by feature
  std::vector<uint8_t> used_;             // by row: this worker has changed it at some time
  std::vector<uint8_t> pulled_;           // by row: in the exchange under way
  std::vector<float> seen_;               // by row: the count that it was pulled with
};

}  // namespace shoal::learn::sparse
