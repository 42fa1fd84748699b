// Splits a shard into words, in batches: the inner loop of counting and encoding. Words are
// separated by space, tab, carriage return and newline, byte by byte; a newline and the end of a
// file end a sentence, as in word2vec.c. (word2vec.c's limit of 1,000 words a sentence is applied
// by the trainer.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/corpus/corpus.h"

namespace shoal::data {

// Longer words are truncated to this many bytes, as in word2vec.c (MAX_STRING 100), or up to three
// fewer to keep UTF-8 characters whole.
inline constexpr size_t kMaxWordBytes = 98;

// A word, or the end of a sentence (size 0). Up to 16 bytes after the word are readable.
struct Token {
  const char* bytes = nullptr;
  uint32_t size = 0;

  bool is_sentence_end() const { return size == 0; }
  std::string_view view() const { return {bytes, size}; }
};

// Reads one shard with one fixed buffer of 256 KiB. Not thread-safe.
class Tokenizer {
 public:
  // `corpus` is copied (cheap).
  Tokenizer(const Corpus& corpus, Shard shard);
  Tokenizer(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Writes tokens to the front of `tokens` (≥ 2) and returns their number; 0 means the end of the
  // shard. Tokens point into the buffer and are valid until the next call. Sentence ends never
  // follow each other and never come first; every shard with words ends with one. Errors as
  // TextStream; after an error only destruction is allowed. About 3 ns a word.
  Result<size_t> Next(std::span<Token> tokens);

  // "path, byte 1234": the position of a token of the latest batch.
  std::string PlaceOf(const Token& token) const;
  // Bytes of decompressed text read so far, for progress.
  uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// True if `bytes` are well-formed UTF-8 (Unicode 15, table 3-7).
bool IsUtf8(std::string_view bytes);

}  // namespace shoal::data
