// One training thread: turns numbered words into windows, windows into blocks of rows, and blocks
// into kernel calls. The worker (worker.cc) runs one of these in each of its threads, feeds it from
// the encoded shard, and exchanges the rows behind its back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "learn/word2vec/exchange/domain_copies.h"
#include "learn/word2vec/exchange/exchange_policy.h"
#include "learn/word2vec/kernels/kernels.h"
#include "learn/word2vec/kernels/matrix.h"
#include "learn/word2vec/kernels/row_locks.h"
#include "learn/word2vec/params.h"
#include "learn/word2vec/trainer/huffman.h"
#include "learn/word2vec/trainer/sampler.h"

namespace shoal::learn::word2vec {

// What the threads of a worker share; outlives them. Rows are trained without locks.
struct TrainingSet {
  Params params;
  const Sampler* sampler = nullptr;
  const HuffmanTree* tree = nullptr;  // with params.hs
  const Kernels* kernels = nullptr;
  Matrix* input = nullptr;   // the vectors of contexts, which become the model
  Matrix* output = nullptr;  // the vectors of predicted words, or of the tree's inner nodes
  RowLocks* locks = nullptr;
  bool counts_uses = true;  // whether anybody asks for due() and uses()
};

// How often a thread has used each row since it was last exchanged. Written by that thread; others
// may look and reset (a count that is lost in the race makes a row wait a little longer).
class UseCounts {
 public:
  explicit UseCounts(size_t rows) : counts_(std::make_unique<std::atomic<uint16_t>[]>(rows)) {}
  // True, and the count starts again, when it reaches `due`.
  bool Add(uint32_t row, uint16_t due) {
    std::atomic<uint16_t>& count = counts_[row];
    const auto uses = static_cast<uint16_t>(count.load(std::memory_order_relaxed) + 1);
    count.store(uses >= due ? 0 : uses, std::memory_order_relaxed);
    return uses >= due;
  }
  // Whether it was used; starts again.
  bool TakeUsed(uint32_t row) {
    if (counts_[row].load(std::memory_order_relaxed) == 0) return false;
    counts_[row].store(0, std::memory_order_relaxed);
    return true;
  }
  // It has been used, however its count began again.
  void MarkUsed(uint32_t row) {
    if (counts_[row].load(std::memory_order_relaxed) == 0)
      counts_[row].store(1, std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<std::atomic<uint16_t>[]> counts_;
};

// Used by one thread, except where it says otherwise.
class Trainer {
 public:
  // Items that one call of Load takes at most; a sentence ends where a block ends.
  static constexpr size_t kBlockItems = 1024;

  // `between_workers` says when a row is due for the servers.
  static Result<std::unique_ptr<Trainer>> Make(const TrainingSet& set, Random random,
                                               const ExchangePolicy& between_workers);

  // The copies of frequent rows that the blocks from now on train, and merge when they have been
  // used often; null: there are none. Of as many rows at every call. Between two blocks.
  void UseCopies(DomainCopies* copies);

  // Takes the next block: numbers of words and data::kSentenceEnd, at most kBlockItems; thins it
  // out. The block before must be done.
  void Load(std::span<const uint32_t> items);
  // One step of gradient descent for each of the next windows of the block, `most` of them or as
  // many as are left. `alpha` is the learning rate. Gives how many it did: 0 when the block is
  // done.
  uint32_t Train(uint32_t most, float alpha);

  // Rows that have become due for an exchange with the servers since the caller last cleared it.
  // May name a row twice.
  std::vector<uint32_t>& due(TableKind table) { return due_[table]; }
  // Any thread.
  UseCounts& uses(TableKind table) { return uses_[table]; }

  // State for a checkpoint.
  Random random() const { return random_; }
  void set_random(Random random) { random_ = random; }

  // Words seen by Load so far, thinned-out ones included. Any thread.
  uint64_t words() const { return words_.load(std::memory_order_relaxed); }
  // Sum and number of the sampled pairs' −log likelihood since the last call.
  struct Loss {
    double sum = 0;
    uint64_t pairs = 0;
  };
  Loss TakeLoss();

 private:
  // What is known of a window before its turn: rows are prefetched in the meantime.
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
  // Of a copied row by one thread until the copy is merged, which costs about as much as a use of a
  // row that another cache has.
  static constexpr uint16_t kUsesOfCopy = 16;

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
  // Has the row fetched while the next window is trained.
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
  DomainCopies* copies_ = nullptr;
  uint32_t copied_ = 0;  // rows of copies_
  UseCounts copy_uses_[kTables];

  // The block at hand: kept words, where their rows are, and the latest position (+1; 0: none)
  // whose word stands again near it, up to a position.
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
  std::vector<float> labels_;  // of the path at hand
  std::vector<float*> contexts_;
  std::vector<float*> distinct_;
  std::vector<float> weights_;
  Matrix loss_rows_;  // copies of rows while their loss is taken
  Matrix scratch_;    // row 0..: gradients, then the mean of cbow
};

}  // namespace shoal::learn::word2vec
