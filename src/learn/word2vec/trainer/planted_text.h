// A text with a known structure: words of one group occur together. For tests only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learn/word2vec/trainer/sampler.h"

namespace shoal::learn::word2vec {

inline constexpr uint32_t kGroups = 4;
inline constexpr uint32_t kGroupWords = 10;

// Sentences of 12 words of one group; word w of group g has number g + kGroups·w.
inline std::vector<std::vector<uint32_t>> PlantedSentences(size_t sentences, uint64_t seed) {
  Random random = Random::Of(seed, 77);
  std::vector<std::vector<uint32_t>> text(sentences);
  for (auto& sentence : text) {
    const uint32_t group = random.Below(kGroups);
    for (int i = 0; i < 12; ++i) sentence.push_back(group + kGroups * random.Below(kGroupWords));
  }
  return text;
}

// The word's text, such as "g2w7", names its group.
inline std::string PlantedWord(uint32_t number) {
  return "g" + std::to_string(number % kGroups) + "w" + std::to_string(number / kGroups);
}

inline std::string PlantedText(size_t sentences, uint64_t seed) {
  std::string text;
  for (const auto& sentence : PlantedSentences(sentences, seed)) {
    for (uint32_t word : sentence) text += PlantedWord(word) + ' ';
    text.back() = '\n';
  }
  return text;
}

}  // namespace shoal::learn::word2vec
