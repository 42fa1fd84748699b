#include "learn/word2vec/trainer/huffman.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <random>
#include <string>

namespace shoal::learn::word2vec {
namespace {

std::string CodeOf(const HuffmanTree& tree, uint32_t word) {
  std::string code;
  for (const auto step : tree.PathOf(word)) code += step.label() == 1 ? '0' : '1';
  return code;
}

std::vector<uint64_t> FallingCounts(std::mt19937_64& random, size_t words) {
  std::vector<uint64_t> counts(words);
  for (size_t i = 0; i < words; ++i) counts[i] = 1 + random() % (1 + 100000 / (i + 1));
  std::sort(counts.rbegin(), counts.rend());
  return counts;
}

// The codes that CreateBinaryTree of word2vec.c gives these counts, by hand.
TEST(Huffman, IsTheTreeOfWord2vecC) {
  const std::vector<uint64_t> counts = {10, 6, 3, 2, 1};
  const HuffmanTree tree(counts);
  // 1 and 2 make 3, which is taken before the leaf 3 since that is not rarer; 6 before the leaf 6
  // likewise; the leaf 10 before 12.
  EXPECT_EQ(CodeOf(tree, 4), "1000");
  EXPECT_EQ(CodeOf(tree, 3), "1001");
  EXPECT_EQ(CodeOf(tree, 2), "101");
  EXPECT_EQ(CodeOf(tree, 1), "11");
  EXPECT_EQ(CodeOf(tree, 0), "0");
  EXPECT_EQ(tree.longest(), 4u);
}

TEST(Huffman, NoCodeBeginsAnotherAndTheSumIsTheLeast) {
  std::mt19937_64 random(3);
  for (const size_t words : {2u, 3u, 17u, 1000u}) {
    const std::vector<uint64_t> counts = FallingCounts(random, words);
    const HuffmanTree tree(counts);
    std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> heap(counts.begin(),
                                                                              counts.end());
    uint64_t least = 0;
    while (heap.size() > 1) {
      const uint64_t a = heap.top();
      heap.pop();
      const uint64_t b = heap.top();
      heap.pop();
      least += a + b;
      heap.push(a + b);
    }
    uint64_t sum = 0;
    double kraft = 0;
    std::map<std::string, uint32_t> nodes;  // a prefix of codes is one inner node
    for (uint32_t word = 0; word < words; ++word) {
      const std::string code = CodeOf(tree, word);
      sum += counts[word] * code.size();
      kraft += std::pow(0.5, static_cast<double>(code.size()));
      EXPECT_LE(code.size(), tree.longest());
      for (size_t i = 0; i < code.size(); ++i) {
        const uint32_t node = tree.PathOf(word)[i].node();
        EXPECT_LT(node, words - 1);
        EXPECT_EQ(nodes.emplace(code.substr(0, i), node).first->second, node);
      }
      EXPECT_EQ(tree.PathOf(word)[0].node(), 0u);
    }
    EXPECT_EQ(sum, least);
    EXPECT_NEAR(kraft, 1, 1e-9);
    EXPECT_EQ(nodes.size(), words - 1);
  }
}

}  // namespace
}  // namespace shoal::learn::word2vec
