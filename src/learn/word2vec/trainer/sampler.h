// Randomness of word2vec: random numbers, subsampling of frequent words, noise words.
// Deterministic: equal on all machines for equal seeds.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn::word2vec {

// wyrand (Wang Yi, public domain): 64 bits from one addition and one multiplication. The state is
// one word, which a checkpoint stores.
class Random {
 public:
  explicit Random(uint64_t state) : state_(state) {}
  // An independent stream for each (seed, stream).
  static Random Of(uint64_t seed, uint64_t stream);

  uint64_t Next() {
    __extension__ using Wide = unsigned __int128;
    state_ += 0xa0761d6478bd642f;
    const Wide product = static_cast<Wide>(state_) * (state_ ^ 0xe7037ed1a0b428db);
    return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
  }
  // Uniform in [0, n), n ≤ 2³²; the bias is below n / 2³².
  uint32_t Below(uint64_t n) { return static_cast<uint32_t>(((Next() >> 32) * n) >> 32); }
  // Uniform in [0, 1), 24 bits.
  float Unit() { return static_cast<float>(Next() >> 40) * 0x1p-24f; }

  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

// Samples words by their counts. Immutable after construction; thread-safe.
class Sampler {
 public:
  // counts: of each word, all ≥ 1. `sample` as the parameter; 0 keeps everything.
  Sampler(std::span<const uint64_t> counts, double sample);

  uint32_t words() const { return static_cast<uint32_t>(columns_.size()); }

  // Subsampling as in word2vec.c: keeps an occurrence with probability (√(f/s) + 1)·s/f, where f is
  // the word's share of the text.
  bool ShouldKeep(uint32_t word, Random& random) const {
    return static_cast<uint32_t>(random.Next() >> 32) <= keep_[word];
  }
  // The probability that ShouldKeep is true.
  double KeepProbability(uint32_t word) const { return (keep_[word] + 1.0) * 0x1p-32; }
  // Expected number of kept words of one pass over the text.
  double kept_words() const { return kept_words_; }

  // Draws noise words: word w with probability ∝ count(w)^¾, by Walker's alias method (Vose 1991).
  // In two steps with other work between them, because the tables exceed the first-level cache:
  // BeginDraw draws random numbers and prefetches the tables' lines; EndDraw converts them to
  // words.
  void BeginDraw(Random& random, std::span<uint64_t> draws) const;
  void EndDraw(std::span<const uint64_t> draws, uint32_t* words) const;

 private:
  struct Column {
    uint32_t below;  // the column's own word for random parts up to this
    uint32_t other;  // else this one
  };
  uint32_t ColumnOf(uint64_t bits) const {
    return static_cast<uint32_t>(((bits >> 32) * columns_.size()) >> 32);
  }

  std::vector<uint32_t> keep_;
  std::vector<Column> columns_;
  double kept_words_ = 0;
};

// Noise words for one thread, drawn in batches. Not thread-safe.
class NoiseSupply {
 public:
  // `sampler` outlives it.
  explicit NoiseSupply(const Sampler* sampler) : sampler_(sampler) {}

  // Drops the current batch, so that all following words depend on `random` alone. Call before the
  // first Next.
  void Restart(Random& random) {
    next_ = kBatch;
    sampler_->BeginDraw(random, draws_);
  }
  uint32_t Next(Random& random) {
    if (next_ == kBatch) {
      sampler_->EndDraw(draws_, words_.data());
      sampler_->BeginDraw(random, draws_);
      next_ = 0;
    }
    return words_[next_++];
  }

 private:
  static constexpr uint32_t kBatch = 32;

  const Sampler* sampler_;
  std::array<uint64_t, kBatch> draws_ = {};  // of the next batch
  std::array<uint32_t, kBatch> words_ = {};
  uint32_t next_ = kBatch;
};

}  // namespace shoal::learn::word2vec
