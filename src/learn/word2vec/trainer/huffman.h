// The binary tree of hierarchical softmax: a word is the path from the root to its leaf; frequent
// words have short paths (Mikolov et al. 2013, "Distributed Representations of Words and Phrases",
// §2.1). Built once in each worker from the vocabulary's counts; the trainer threads read it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn::word2vec {

// Immutable after construction; thread-safe.
class HuffmanTree {
 public:
  // counts: of each word, descending, at least two words. The tree equals that of word2vec.c, ties
  // included. O(words × path).
  explicit HuffmanTree(std::span<const uint64_t> counts);

  // One inner node of a path: its number, and the label to predict, 1 − code. The root is number 0,
  // and nodes passed by more words have lower numbers; there is one node fewer than words.
  struct Step {
    uint32_t bits;
    uint32_t node() const { return bits >> 1; }
    float label() const { return static_cast<float>(bits & 1); }
  };
  // The path of a word, from the root.
  std::span<const Step> PathOf(uint32_t word) const {
    return {steps_.data() + starts_[word], steps_.data() + starts_[word + 1]};
  }
  uint32_t longest() const { return longest_; }

 private:
  std::vector<uint64_t> starts_;  // [words + 1]
  std::vector<Step> steps_;
  uint32_t longest_ = 0;
};

}  // namespace shoal::learn::word2vec
