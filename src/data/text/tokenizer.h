// Words of a shard, in batches: the inner loop of counting and encoding. Words are what stands
// between space, tab, carriage return and newline, byte for byte; newline and the end of a file end
// a sentence, as in word2vec.c. (That the trainer cuts sentences at 1,000 words is the trainer's.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/corpus/corpus.h"

namespace shoal::data {

// Longer words are cut to this many bytes, as word2vec.c does (MAX_STRING 100), or up to three
// fewer where this would cut a UTF-8 character.
inline constexpr size_t kMaxWordBytes = 98;

// A word, or a sentence's end (size 0). `bytes` may be read up to 16 bytes beyond size (of whatever
// follows).
struct Token {
  const char* bytes = nullptr;
  uint32_t size = 0;

  bool is_sentence_end() const { return size == 0; }
  std::string_view view() const { return {bytes, size}; }
};

// Streams; memory is one fixed buffer (256 KiB) whatever the text. Not thread-safe.
class Tokenizer {
 public:
  // `corpus` is copied (cheap).
  Tokenizer(const Corpus& corpus, Shard shard);
  Tokenizer(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Fills the front of `tokens` (≥ 2) and gives how many; 0 means the end of the shard. The tokens
  // point into the buffer and are good until the next call. There are no two sentence ends in
  // succession, none at the start, and one at the end of every shard that has words. Errors as
  // TextStream; after an error only destruction is allowed.
  // About 3 ns a word.
  Result<size_t> Next(std::span<Token> tokens);

  // "path, byte 1234": where a token of the latest batch begins.
  std::string PlaceOf(const Token& token) const;
  // Of decompressed text, read so far, for progress.
  uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// True if `bytes` are well-formed UTF-8 (Unicode 15, table 3-7).
bool IsUtf8(std::string_view bytes);

}  // namespace shoal::data
