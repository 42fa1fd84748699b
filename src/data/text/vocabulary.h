// The words that are trained, numbered by falling frequency. Made once from the merged counts, sent
// to all workers, saved with the model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/text/tokenizer.h"
#include "data/text/word_counts.h"

namespace shoal::data {

inline constexpr uint32_t kNoWord = UINT32_MAX;

// Immutable; cheap to copy; all calls are thread-safe.
class Vocabulary {
 public:
  // The words that occur at least `min_count` times, by count falling, then by bytes rising: the
  // same whatever the sharding. FailedPrecondition if none is left (says how many there were and
  // how often the most frequent one occurs). Warns in the log once if words were not valid UTF-8
  // (with the place) or were forgotten for memory.
  static Result<Vocabulary> Make(const WordCounts& counts, uint64_t min_count);

  uint32_t size() const;
  std::string_view word(uint32_t id) const;
  uint64_t count(uint32_t id) const;
  // Running words of the text that are in the vocabulary: Σ count.
  uint64_t words() const;
  // Running words of the text, all of them.
  uint64_t text_words() const;
  uint64_t text_sentences() const;
  // Of the whole text, SequenceDigest::ToString.
  const std::string& text_digest() const;
  uint64_t min_count() const;

  // The number of a word, or kNoWord. A word longer than kMaxWordBytes is not cut for you.
  uint32_t Find(std::string_view word) const;
  // Numbers of many words at once, with their cache misses overlapped; sentence ends give
  // kSentenceEnd of encoder.h. ids: [tokens.size()].
  void FindAll(std::span<const Token> tokens, uint32_t* ids) const;

  // For the wire and for checkpoints (docs/formats/wordcounts.md), checksummed.
  std::string Encode() const;
  static Result<Vocabulary> Decode(std::string_view bytes);
  // word2vec's -save-vocab: "word count\n" by falling count.
  std::string ToText() const;

 private:
  struct State;
  explicit Vocabulary(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace shoal::data
