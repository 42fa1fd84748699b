// One training thread: converts word ids to windows, windows to blocks of rows, and blocks to
// kernel calls. Each thread of a worker (worker.cc) runs one, feeds it from its encoded shard, and
// exchanges its rows with the servers concurrently.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "learn/word2vec/exchange/exchange_policy.h"
#include "learn/word2vec/exchange/row_copies.h"
#include "learn/word2vec/kernels/kernels.h"
#include "learn/word2vec/kernels/matrix.h"
#include "learn/word2vec/kernels/row_locks.h"
#include "learn/word2vec/params.h"
#include "learn/word2vec/trainer/huffman.h"
#include "learn/word2vec/trainer/sampler.h"

namespace shoal::learn::word2vec {

// State shared by the threads of a worker, which must outlive the trainers. Rows are trained
// without locks.
struct TrainingSet {
  Params params;
  const Sampler* sampler = nullptr;
  const HuffmanTree* tree = nullptr;  // with params.hs
  const Kernels* kernels = nullptr;
  Matrix* input = nullptr;   // vectors of contexts, which become the model
  Matrix* output = nullptr;  // vectors of predicted words, or of the tree's inner nodes
  RowLocks* locks = nullptr;
  bool counts_uses = true;  // due() and uses() are needed
};

// Counts how often a thread has used each row since its last exchange. Written by that thread.
// Other threads may read and reset counts; a count lost in that race only delays the row's
// exchange.
class UseCounts {
 public:
  explicit UseCounts(size_t rows) : counts_(std::make_unique<std::atomic<uint16_t>[]>(rows)) {}
  // Counts a use. True, and the count restarts, when it reaches `due`.
  bool Add(uint32_t row, uint16_t due) {
    std::atomic<uint16_t>& count = counts_[row];
    const auto uses = static_cast<uint16_t>(count.load(std::memory_order_relaxed) + 1);
    count.store(uses >= due ? 0 : uses, std::memory_order_relaxed);
    return uses >= due;
  }
  // True if the row was used; resets the count.
  bool TakeUsed(uint32_t row) {
    if (counts_[row].load(std::memory_order_relaxed) == 0) return false;
    counts_[row].store(0, std::memory_order_relaxed);
    return true;
  }
  // Marks the row as used if its count is 0.
  void MarkUsed(uint32_t row) {
    if (counts_[row].load(std::memory_order_relaxed) == 0)
      counts_[row].store(1, std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<std::atomic<uint16_t>[]> counts_;
};

// Trains one thread's blocks. Used by one thread, except for methods that any thread may call.
class Trainer {
 public:
  // Maximum number of items of a block; a sentence ends at the end of a block.
  static constexpr size_t kBlockItems = 1024;
  // Uses of a copied row by one thread before it is merged. A merge costs about as much as one use
  // of a row in another cache.
  static constexpr uint16_t kUsesOfCopy = 16;

  // `between_workers` decides when a row is due for exchange with the servers.
  static Result<std::unique_ptr<Trainer>> Make(const TrainingSet& set, Random random,
                                               const ExchangePolicy& between_workers);

  // Sets the copies of frequent rows that all blocks train, and merge after kUsesOfCopy uses; null:
  // none. Call before the first block. `copies` outlives it.
  void UseCopies(RowCopies* copies);

  // Loads the next block: word ids and data::kSentenceEnd, at most kBlockItems; subsamples it. The
  // previous block must be done.
  void Load(std::span<const uint32_t> items);
  // Trains the next windows of the block, at most `most`, one step of gradient descent each.
  // `alpha` is the learning rate. Returns the number of windows; 0 when the block is done.
  uint32_t Train(uint32_t most, float alpha);

  // Rows that have become due for exchange since the caller last cleared the list. May contain a
  // row twice.
  std::vector<uint32_t>& due(TableKind table) { return due_[table]; }
  // For any thread.
  UseCounts& uses(TableKind table) { return uses_[table]; }

  // The random state, for checkpoints.
  Random random() const { return random_; }
  void set_random(Random random) { random_ = random; }

  // Words loaded so far, before subsampling. For any thread.
  uint64_t words() const { return words_.load(std::memory_order_relaxed); }
  // Sum and number of sampled −log likelihoods since the last call.
  struct Loss {
    double sum = 0;
    uint64_t pairs = 0;
  };
  Loss TakeLoss();

 private:
  // A window that has been prepared, so that its rows are prefetched.
  struct Step {
    uint32_t left = 0;  // contexts are the positions [left, right) except the centre's own
    uint32_t right = 0;
    uint32_t groups = 0;        // of contexts, each with noise of its own; 0: there are no contexts
    float** outputs = nullptr;  // [groups × (1 + negative)] rows: the centre's, then its noise,
                                // distinct within a group; with a tree those of the centre's path,
                                // once
  };
  static constexpr uint32_t kAhead = 3;  // windows prepared ahead
  static constexpr uint32_t kSteps = 4;  // remembered: a power of two > kAhead

  Trainer(const TrainingSet& set, Random random, const ExchangePolicy& between_workers);

  void Subsample(std::span<const uint32_t> items);
  void EndSentence();
  void Prepare(uint32_t position);
  void DrawNoise(uint32_t centre, float** rows);
  void FollowPath(uint32_t centre, float** rows);
  void LabelPath(uint32_t centre, Block* block);
  void GatherContexts(uint32_t position);
  void TrainWindow(uint32_t position, float alpha);
  void MergeRepeats(Block* block);
  void SampleLoss(const Block& block);
  void AddLoss(const Block& block, const float* x);
  void CountUse(TableKind table, uint32_t word) {
    if (set_.counts_uses && uses_[table].Add(word, due_for_workers_[table]))
      due_[table].push_back(word);
    if (word < copied_ && copy_uses_[table].Add(word, kUsesOfCopy)) copies_->Merge(table, word);
  }
  float* Row(TableKind table, uint32_t word) {
    return word < copied_ ? copies_->row(table, word) : shared_[table]->row(word);
  }
  // Prefetches the row while the next window is trained.
  void Fetch(float* row) { ahead_.push_back(row); }

  const TrainingSet set_;
  const uint32_t stride_;
  const uint32_t window_;
  const uint32_t negative_;
  Random random_;
  std::atomic<uint64_t> words_{0};
  const ExchangePolicy between_workers_;
  UseCounts uses_[kTables];
  uint16_t due_for_workers_[kTables] = {};
  std::vector<uint32_t> due_[kTables];
  Loss loss_;
  uint32_t windows_until_loss_ = 1;

  Matrix* const shared_[kTables];
  RowCopies* copies_ = nullptr;
  uint32_t copied_ = 0;  // rows of copies_
  UseCounts copy_uses_[kTables];

  // The current block: kept words, their rows, and for each position the latest earlier position
  // (+1; 0: none) of the same word, filled up to a position.
  std::vector<uint32_t> kept_;
  std::vector<float*> kept_rows_;
  std::vector<uint32_t> previous_;
  std::vector<uint32_t> sentence_ends_;
  uint32_t next_ = 0;    // position that is trained next
  size_t sentence_ = 0;  // of the position that is prepared next
  uint32_t sentence_begin_ = 0;

  Step steps_[kSteps];
  std::vector<float*> ahead_;  // rows of windows prepared, not yet fetched
  std::vector<float*> output_rows_;
  std::vector<uint32_t> groups_of_;  // by the number of contexts
  std::vector<uint32_t> noise_words_;
  NoiseSupply noise_;
  std::vector<float> labels_;  // of the current path
  std::vector<float*> contexts_;
  std::vector<float*> distinct_;
  std::vector<float> weights_;
  Matrix loss_rows_;  // copies of rows for the loss
  Matrix scratch_;    // row 0..: gradients, then the mean of cbow
};

}  // namespace shoal::learn::word2vec
