#include "learn/word2vec/trainer/huffman.h"

#include <algorithm>

#include "base/status.h"

namespace shoal::learn::word2vec {
namespace {

// Nodes 0 … words − 1 are the leaves; inner nodes follow in order of creation; the last one is the
// root.
struct Nodes {
  std::vector<uint32_t> parents;
  std::vector<uint8_t> codes;
};

// Repeatedly joins the two rarest nodes. Leaves are taken from the last one on; inner nodes in
// order of creation, which is the order of their counts.
Nodes Join(std::span<const uint64_t> counts) {
  const size_t words = counts.size();
  std::vector<uint64_t> weights(counts.begin(), counts.end());
  weights.resize(2 * words - 1);
  Nodes nodes;
  nodes.parents.resize(2 * words - 1);
  nodes.codes.resize(2 * words - 1);
  size_t leaves = words;  // that wait
  size_t inner = words;   // the first that waits
  for (size_t made = words; made < 2 * words - 1; ++made) {
    const auto rarest = [&] {
      const bool leaf = leaves > 0 && (inner == made || weights[leaves - 1] < weights[inner]);
      return leaf ? --leaves : inner++;
    };
    const size_t first = rarest();
    const size_t second = rarest();
    weights[made] = weights[first] + weights[second];
    nodes.parents[first] = nodes.parents[second] = static_cast<uint32_t>(made);
    nodes.codes[second] = 1;
  }
  return nodes;
}

}  // namespace

HuffmanTree::HuffmanTree(std::span<const uint64_t> counts) {
  SHOAL_CHECK(counts.size() >= 2);
  const Nodes nodes = Join(counts);
  const auto root = static_cast<uint32_t>(nodes.parents.size() - 1);
  starts_.reserve(counts.size() + 1);
  starts_.push_back(0);
  for (uint32_t word = 0; word < counts.size(); ++word) {
    const auto begin = static_cast<std::ptrdiff_t>(steps_.size());
    for (uint32_t at = word; at != root; at = nodes.parents[at])
      steps_.push_back({(root - nodes.parents[at]) << 1 | (1u - nodes.codes[at])});
    std::reverse(steps_.begin() + begin, steps_.end());
    starts_.push_back(steps_.size());
    longest_ =
        std::max(longest_, static_cast<uint32_t>(steps_.size()) - static_cast<uint32_t>(begin));
  }
}

}  // namespace shoal::learn::word2vec
