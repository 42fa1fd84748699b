// The words to train, numbered by descending count. Built once from the merged counts, sent to all
// workers, saved with the model.
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

// Immutable; cheap to copy (shared state); all calls are thread-safe.
class Vocabulary {
 public:
  // The words that occur at least `min_count` times, ordered by descending count, then ascending by
  // bytes: independent of sharding. FailedPrecondition if none is left, with the number of words
  // and the highest count. Logs a warning if words were not valid UTF-8 (with a position) or were
  // dropped to limit memory.
  static Result<Vocabulary> Make(const WordCounts& counts, uint64_t min_count);

  uint32_t size() const;
  std::string_view word(uint32_t id) const;
  uint64_t count(uint32_t id) const;
  // Occurrences of words of the vocabulary in the text: Σ count.
  uint64_t words() const;
  // All word occurrences of the text.
  uint64_t text_words() const;
  uint64_t text_sentences() const;
  // Digest of the whole text, as SequenceDigest::ToString.
  const std::string& text_digest() const;
  uint64_t min_count() const;

  // The id of a word, or kNoWord. Does not truncate words longer than kMaxWordBytes.
  uint32_t Find(std::string_view word) const;
  // Looks up many words, overlapping their cache misses. Sentence ends give kSentenceEnd of
  // encoder.h. ids: [tokens.size()].
  void FindAll(std::span<const Token> tokens, uint32_t* ids) const;

  // Checksummed encoding for messages and checkpoints (docs/formats/wordcounts.md).
  std::string Encode() const;
  static Result<Vocabulary> Decode(std::string_view bytes);
  // The format of word2vec's -save-vocab: "word count\n" by descending count.
  std::string ToText() const;

 private:
  struct State;
  explicit Vocabulary(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace shoal::data
