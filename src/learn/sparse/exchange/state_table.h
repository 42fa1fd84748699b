// The state of every feature (learner.h) in this worker's memory, and its exchange with the
// parameter servers, in four steps: pull the rows, let examples of the round push back at what
// others have changed (replay.h), adopt what came of it, push what is beyond what the servers have.
// Between two exchanges L is what the threads train, and B the weights and squares that the servers
// had when it began.
//
// Rows that a round has used often are exchanged so, by one worker at a time. The other ones that a
// worker has changed, or trains next, are exchanged by any number of workers at once, without a
// replay (docs/adr/0430).
//
// A row on the servers is a feature, or a few side by side, as weights and squares of gradients,
// and the count of the rule `combine` (ps/types.h): of a push that another has overtaken only a
// share is taken, and the rest stays in L for the next exchange. A bias is one feature more, behind
// the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "learn/sparse/exchange/merge_kernels.h"
#include "learn/sparse/exchange/replay.h"
#include "learn/sparse/learner.h"
#include "ps/client/client.h"

namespace shoal::learn::sparse {

// How the features lie in rows.
struct RowLayout {
  RowLayout(uint64_t features, uint32_t width, uint64_t classes_of_learner);

  uint64_t classes;
  uint32_t shift;
  uint64_t features;  // of a row: 1 << shift
  uint64_t values;    // floats of its features
  uint64_t floats;    // and the count
  uint64_t rows;
  uint64_t bias_row;  // the first that has a bias
};

class StateTable {
 public:
  // `client` (not owned) may be null: then there is nothing to meet. `learner` (not owned) outlives
  // the table. ResourceExhausted where memory is; InvalidArgument for instructions (`simd`) that
  // this machine does not have.
  static Result<std::unique_ptr<StateTable>> Make(ps::Client* client, uint64_t features,
                                                  const Learner* learner, std::string_view simd);
  ~StateTable();

  uint64_t features() const { return features_; }
  uint64_t rows() const { return layout_.rows; }
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
  // Takes over what the servers have of all rows; what this worker has beyond stays, for the next
  // exchange. No thread may train or exchange meanwhile.
  Status TakeAll();
  // Says that this worker trains these features: exchanges bring them from the first one on.
  void Use(std::span<const uint32_t> features);
  bool connected() const { return base_ != nullptr; }

  // How many workers there are with this one, which decides what is frequent. Before any exchange.
  void ShareWith(int workers);
  // Says that this worker trains an example now, or will soon. Any number of threads.
  void Touch(const Row& row);
  void Need(const Row& row);

  // Of which rows an exchange is: those of which many examples were trained (Touch) since they were
  // last exchanged, that this worker uses or ever changed, or all.
  enum class RowSet : uint8_t { kFrequent, kUsed, kAll };
  // Before Pull: the features of an example that Replay will be called with, and the number of its
  // bias. Those of no such example are merged at once, without what a replay needs of them. Any
  // number of threads.
  void Expect(const Row& row, uint64_t bias);
  // An exchange: Pull, Adopt and Push of all parts, each when the one before has ended; parts may
  // go in parallel. Threads may train between Adopt and Push, but not during any of them.
  Status Pull(size_t part, size_t parts, RowSet which);
  void Adopt(size_t part, size_t parts);
  Status Push(size_t part, size_t parts);
  // An exchange of the rows that are marked by Touch and did not go with a Push since, and also of
  // those that are marked by Need, or that this worker uses. Parts as above; no thread may train
  // meanwhile, but other workers may exchange.
  enum class RestSet : uint8_t { kTouched, kNeeded, kUsed };
  Status ExchangeRest(size_t part, size_t parts, RestSet which);
  // What this worker has changed since it last met the servers goes there, where no other worker
  // changes anything: instead of an exchange, for a tenth of its work. Parts as above.
  Status Store(size_t part, size_t parts);
  // Between Pull and Adopt, of examples that were expected before (replay.h). `bias`: the number of
  // the feature that is their bias, features() for the table's; none: UINT64_MAX.
  float ReplayMargin(const Row& row, uint64_t bias, std::vector<float>* scratch);
  void Replay(const Replayed& example, uint64_t bias, std::vector<float>* scratch);
  // Rows of which the pushes since the last call were not taken whole.
  uint64_t TakePartialPushCount() { return partial_pushes_.exchange(0); }

 private:
  struct Piece;
  class PushQueue;
  struct Range {
    uint64_t begin, end;
  };
  StateTable(ps::Client* client, uint64_t features, const Learner* learner,
             const MergeKernels* kernels);
  float* Allocate() const;
  bool Differs(uint64_t row) const;
  void TakeNewer(uint64_t row, const float* theirs);
  template <typename Mark>
  void ForEachRowOf(const Row& row, const Mark& mark);
  Merge MergeWith(uint64_t bias);
  SlotBlock BlockAt(uint64_t feature, const SlotRun& run) const;
  // What the servers have of a row: brings its features into the form of sparse::Merge.
  void MergeRow(uint64_t row, const float* theirs, RowSet which);
  // By how much the weights and squares of a row are beyond B; false: they are not.
  bool StoreDelta(uint64_t row, float* delta) const;
  // The servers' answer to a push of that `delta`. With `alone`, what others have pushed before it
  // is to be undone by the next one, else it is taken over.
  void Pushed(uint64_t row, const float* delta, const float* answer, bool alone);
  Result<ps::Ticket> IssuePush(Piece* piece);
  void FinishPush(const Piece& piece, bool alone);
  void MergeAtOnce(uint64_t row, const float* theirs);
  template <typename Wanted>
  Status PushRows(Range rows, const std::vector<uint8_t>* marks, const Wanted& wanted, bool alone);
  template <typename Fill, typename Issue, typename Finish>
  Status InPieces(Range rows, const std::vector<uint8_t>* marks, const Fill& fill,
                  const Issue& issue, const Finish& finish);

  // Of a mark.
  static constexpr uint8_t kUses = 0x7f;    // trained examples since the last exchange, or so many
  static constexpr uint8_t kNeeded = 0x80;  // examples that will be trained soon

  ps::Client* const client_;
  const Learner* const learner_;
  const MergeKernels* const kernels_;
  const std::vector<Slot> slots_;
  const std::vector<SlotRun> runs_;
  const uint64_t features_;
  const uint64_t width_;
  const bool pairs_;  // a feature is one value and its squares
  const RowLayout layout_;
  ps::TableRef table_;
  std::atomic<uint64_t> partial_pushes_{0};
  float* local_ = nullptr;                // [layout_.rows × layout_.values]
  float* base_ = nullptr;                 // likewise, weights and squares; null until connected
  float* shift_ = nullptr;                // likewise, of sparse::Merge
  std::vector<MergeState> merge_states_;  // by feature; from Pull to Push
  std::vector<uint8_t> expected_;         // by feature: a replay will read it
  std::vector<uint8_t> used_;             // by row: this worker uses it
  std::vector<uint8_t> marks_;            // by row
  uint8_t frequent_uses_ = 1;
  std::vector<uint8_t> pulled_;  // by row: in the exchange under way
  std::vector<float> seen_;      // by row: the count that it was pulled with
};

template <typename Mark>
void StateTable::ForEachRowOf(const Row& row, const Mark& mark) {
  for (uint32_t i = 0; i < row.count; ++i) {
    const uint64_t first = row.features[i] * layout_.classes;
    for (uint64_t at = first >> layout_.shift; at <= (first + layout_.classes - 1) >> layout_.shift;
         ++at)
      mark(std::atomic_ref(marks_[at]));
  }
}

// Threads that touch a row at the same time may count one example.
inline void StateTable::Touch(const Row& row) {
  ForEachRowOf(row, [](std::atomic_ref<uint8_t> mark) {
    const uint8_t now = mark.load(std::memory_order_relaxed);
    if ((now & kUses) != kUses)
      mark.store(static_cast<uint8_t>(now + 1), std::memory_order_relaxed);
  });
}

inline void StateTable::Need(const Row& row) {
  ForEachRowOf(row, [](std::atomic_ref<uint8_t> mark) {
    mark.store(mark.load(std::memory_order_relaxed) | kNeeded, std::memory_order_relaxed);
  });
}

}  // namespace shoal::learn::sparse
