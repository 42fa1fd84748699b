#include "learn/word2vec/trainer/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/text/encoder.h"

namespace shoal::learn::word2vec {
namespace {

// One window in this many is sampled for the loss.
constexpr uint32_t kLossEvery = 1024;
// Attempts to draw a distinct noise word before a window makes do with fewer; only tiny
// vocabularies reach it.
constexpr int kNoiseTries = 64;
constexpr size_t kOutputsTogether = 6;  // of the kernels
// The limit of a row's movement in one step, in units of its movement at learning rate 1: alpha ×
// the contexts trained together. The logistic loss has curvature at most
// x
// ²/4 along a context x, so that a step s overshoots if s·
// x
// ² > 4 and diverges from twice that. Ten contexts (the widest default window) at the usual rate of
// 0.025 give a step of this size, which is stable for vectors longer than those of any text.
constexpr double kMostStep = 0.25;

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::Make(const TrainingSet& set, Random random,
                                               const ExchangePolicy& between_workers) {
  std::unique_ptr<Trainer> trainer(new Trainer(set, random, between_workers));
  const auto dim = static_cast<size_t>(set.params.dim);
  const size_t gradients = GradientFloats(
      2 * trainer->window_, std::max<size_t>(kOutputsTogether, trainer->negative_ + 1));
  TRY_ASSIGN(trainer->scratch_, Matrix::Make(3 + gradients / trainer->stride_, trainer->stride_));
  TRY_ASSIGN(trainer->loss_rows_, Matrix::Make(3, dim));
  return trainer;
}

Trainer::Trainer(const TrainingSet& set, Random random, const ExchangePolicy& between_workers)
    : set_(set),
      stride_(static_cast<uint32_t>(set.input->stride())),
      window_(static_cast<uint32_t>(set.params.window)),
      negative_(
          static_cast<uint32_t>(std::min<int64_t>(set.params.negative, set.sampler->words() - 1))),
      random_(random),
      between_workers_(between_workers),
      uses_{UseCounts(set.sampler->words()), UseCounts(set.sampler->words())},
      shared_{set.input, set.output},
      copy_uses_{UseCounts(0), UseCounts(0)},
      noise_(set.sampler) {
  kept_.reserve(kBlockItems);
  kept_rows_.reserve(kBlockItems);
  previous_.reserve(kBlockItems);
  noise_words_.resize(negative_);
  const uint32_t longest = set.params.hs ? set.tree->longest() : 0;
  labels_.resize(longest);
  const size_t contexts = 2 * window_;
  const auto together = static_cast<uint32_t>(
      std::clamp(kMostStep / set.params.alpha + 1e-9, 1.0, static_cast<double>(contexts)));
  for (uint32_t n = 0; n <= contexts; ++n) {
    groups_of_.push_back(set.params.cbow ? std::min(n, 1u) : (n + together - 1) / together);
  }
  const size_t most = std::max<size_t>(groups_of_.back() * (1 + negative_), longest);
  output_rows_.resize(kSteps * most);
  for (uint32_t i = 0; i < kSteps; ++i) steps_[i].outputs = output_rows_.data() + i * most;
  contexts_.resize(contexts);
  distinct_.resize(contexts);
  weights_.resize(contexts);
}

void Trainer::EndSentence() {
  const auto end = static_cast<uint32_t>(kept_.size());
  if (!sentence_ends_.empty() && sentence_ends_.back() == end) return;
  if (end != 0) sentence_ends_.push_back(end);
}

void Trainer::Subsample(std::span<const uint32_t> items) {
  kept_.clear();
  kept_rows_.clear();
  previous_.clear();
  sentence_ends_.clear();
  uint64_t words = 0;
  for (uint32_t item : items) {
    if (item == data::kSentenceEnd) {
      EndSentence();
      continue;
    }
    ++words;
    if (!set_.sampler->ShouldKeep(item, random_)) continue;
    const auto position = static_cast<uint32_t>(kept_.size());
    const uint32_t first = position - std::min(position, 2 * window_);
    uint32_t before = position;
    while (before > first && kept_[before - 1] != item) --before;
    const uint32_t latest = previous_.empty() ? 0 : previous_.back();
    previous_.push_back(before > first ? std::max(latest, before) : latest);
    kept_.push_back(item);
    kept_rows_.push_back(Row(kInput, item));
  }
  EndSentence();
  words_.store(words_.load(std::memory_order_relaxed) + words, std::memory_order_relaxed);
}

void Trainer::DrawNoise(uint32_t centre, float** rows) {
  uint32_t* const words = noise_words_.data();
  for (uint32_t i = 0; i < negative_; ++i) {
    uint32_t word = centre;
    for (int tries = 0; tries < kNoiseTries; ++tries) {
      word = noise_.Next(random_);
      bool taken = word == centre;
      for (uint32_t j = 0; j < i; ++j) taken |= words[j] == word;
      if (!taken) break;
      word = centre;
    }
    if (word == centre) {  // a tiny vocabulary: take the first free word
      word = 0;
      while (word == centre || std::find(words, words + i, word) != words + i) ++word;
    }
    words[i] = word;
    rows[i] = Row(kOutput, word);
    Fetch(rows[i]);
    CountUse(kOutput, word);
  }
}

void Trainer::FollowPath(uint32_t centre, float** rows) {
  for (const HuffmanTree::Step step : set_.tree->PathOf(centre)) {
    *rows = Row(kOutput, step.node());
    Fetch(*rows++);
    CountUse(kOutput, step.node());
  }
}

void Trainer::Prepare(uint32_t position) {
  if (position >= sentence_ends_[sentence_]) sentence_begin_ = sentence_ends_[sentence_++];
  const uint32_t sentence_end = sentence_ends_[sentence_];
  const uint32_t width = 1 + random_.Below(window_);
  Step& step = steps_[position % kSteps];
  step.left = position - std::min(position - sentence_begin_, width);
  step.right = std::min(sentence_end, position + width + 1);
  step.groups = groups_of_[step.right - step.left - 1];
  if (position + window_ < kept_.size()) Fetch(kept_rows_[position + window_]);
  if (step.groups == 0) return;
  const uint32_t centre = kept_[position];
  CountUse(kInput, centre);
  if (set_.params.hs) return FollowPath(centre, step.outputs);
  float* const centre_row = Row(kOutput, centre);
  Fetch(centre_row);
  CountUse(kOutput, centre);
  float** outputs = step.outputs;
  for (uint32_t group = 0; group < step.groups; ++group, outputs += 1 + negative_) {
    outputs[0] = centre_row;
    DrawNoise(centre, outputs + 1);
  }
}

// A context that occurs twice in a block is trained once with weight 2.
void Trainer::MergeRepeats(Block* block) {
  const uint32_t all = block->m;
  block->m = 0;
  for (uint32_t i = 0; i < all; ++i) {
    uint32_t at = 0;
    while (at < block->m && distinct_[at] != block->contexts[i]) ++at;
    if (at == block->m) {
      distinct_[block->m] = block->contexts[i];
      weights_[block->m++] = 0;
    }
    weights_[at] += 1;
  }
  block->contexts = distinct_.data();
  block->weights = block->m < all ? weights_.data() : nullptr;
}

// Sets the labels on the path of the block's centre.
void Trainer::LabelPath(uint32_t centre, Block* block) {
  const auto path = set_.tree->PathOf(centre);
  block->n = static_cast<uint32_t>(path.size());
  block->labels = labels_.data();
  for (size_t i = 0; i < path.size(); ++i) labels_[i] = path[i].label();
}

// Collects the rows of a window's contexts and deals them out to the groups in turn, so that
// neighbouring contexts, which are the most similar, do not share noise. The rows of a group are
// contiguous.
void Trainer::GatherContexts(uint32_t position) {
  const Step& step = steps_[position % kSteps];
  const uint32_t total = step.right - step.left - 1;
  const uint32_t before = position - step.left;
  float** const rows = contexts_.data();
  if (step.groups == 1) {
    for (uint32_t i = 0; i < before; ++i) rows[i] = kept_rows_[step.left + i];
    for (uint32_t i = before; i < total; ++i) rows[i] = kept_rows_[step.left + i + 1];
    return;
  }
  uint32_t at = 0;
  for (uint32_t group = 0; group < step.groups; ++group) {
    for (uint32_t i = group; i < total; i += step.groups)
      rows[at++] = kept_rows_[step.left + i + (i >= before)];
  }
}

void Trainer::TrainWindow(uint32_t position, float alpha) {
  const Step& step = steps_[position % kSteps];
  if (step.groups == 0) return;
  const uint32_t total = step.right - step.left - 1;
  const bool repeats = previous_[step.right - 1] > step.left;
  GatherContexts(position);

  Block block;
  block.n = 1 + negative_;
  if (set_.params.hs) LabelPath(kept_[position], &block);
  block.stride = stride_;
  block.alpha = alpha;
  block.gradients = scratch_.row(2);
  block.outputs = step.outputs;
  float** contexts = contexts_.data();
  uint32_t fetched = 0;
  for (uint32_t group = 0; group < step.groups; ++group) {
    block.contexts = contexts;
    block.weights = nullptr;
    block.m = (total - group + step.groups - 1) / step.groups;
    contexts += block.m;
    if (repeats) MergeRepeats(&block);
    if (--windows_until_loss_ == 0) SampleLoss(block);
    const auto left = static_cast<uint32_t>(ahead_.size()) - fetched;
    block.ahead = ahead_.data() + fetched;
    block.fetched = left / (step.groups - group);
    fetched += block.fetched;
    if (set_.params.cbow) {
      set_.kernels->cbow(block, scratch_.row(0));
    } else {
      set_.kernels->skipgram(block);
    }
    if (!set_.params.hs) block.outputs += block.n;
  }
  ahead_.clear();
}

void Trainer::SampleLoss(const Block& block) {
  windows_until_loss_ = kLossEvery;
  const auto dim = static_cast<uint32_t>(set_.params.dim);
  const uint32_t rows = set_.params.cbow ? 1 : block.m;
  Matrix& x = loss_rows_;
  for (uint32_t m = 0; m < block.m; ++m) {
    float* const to = x.row(set_.params.cbow ? 1 : 0);
    set_.kernels->copy(block.contexts[m], to, stride_);
    if (!set_.params.cbow) AddLoss(block, x.row(0));
    for (uint32_t k = 0; set_.params.cbow && k < dim; ++k)
      x.row(0)[k] = (m == 0 ? 0 : x.row(0)[k]) + to[k] / static_cast<float>(block.m);
  }
  if (set_.params.cbow) AddLoss(block, x.row(0));
  loss_.pairs += rows;
}

// Adds the loss of one context, or of the contexts' mean, against the block's outputs.
void Trainer::AddLoss(const Block& block, const float* x) {
  for (uint32_t n = 0; n < block.n; ++n) {
    float* const y = loss_rows_.row(2);
    set_.kernels->copy(block.outputs[n], y, stride_);
    double dot = 0;
    for (int64_t k = 0; k < set_.params.dim; ++k) dot += static_cast<double>(x[k]) * y[k];
    const bool yes = block.labels != nullptr ? block.labels[n] == 1 : n == 0;
    loss_.sum += std::log1p(std::exp(yes ? -dot : dot));
  }
}

Trainer::Loss Trainer::TakeLoss() { return std::exchange(loss_, {}); }

void Trainer::Load(std::span<const uint32_t> items) {
  SHOAL_CHECK(items.size() <= kBlockItems && next_ == kept_.size());
  // Only the random state carries over between blocks.
  noise_.Restart(random_);
  Subsample(items);
  next_ = 0;
  ahead_.clear();
  sentence_ = 0;
  sentence_begin_ = 0;
}

uint32_t Trainer::Train(uint32_t most, float alpha) {
  const auto n = static_cast<uint32_t>(kept_.size());
  if (next_ == n) return 0;
  for (const TableKind table : {kInput, kOutput}) {
    due_for_workers_[table] = between_workers_.UsesUntilDue(table, alpha);
  }
  if (next_ == 0) {
    for (uint32_t i = 0; i < std::min(n, window_); ++i) Fetch(kept_rows_[i]);
    for (uint32_t i = 0; i < std::min(n, kAhead); ++i) Prepare(i);
  }
  const uint32_t begin = next_;
  const uint32_t end = begin + std::min(most, n - begin);
  for (; next_ < end; ++next_) {
    if (next_ + kAhead < n) Prepare(next_ + kAhead);
    TrainWindow(next_, alpha);
  }
  return end - begin;
}

void Trainer::UseCopies(RowCopies* copies) {
  SHOAL_CHECK(kept_.empty());
  copies_ = copies;
  copied_ = copies == nullptr ? 0 : copies->rows();
  for (UseCounts& uses : copy_uses_) uses = UseCounts(copied_);
}

}  // namespace shoal::learn::word2vec
