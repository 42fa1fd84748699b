// A shard as numbers of words, ready to be streamed epoch after epoch: tokenised once into a
// scratch file that has no name (it is gone when the process is), four bytes a word; where the disk
// is too small for that, tokenised anew in every epoch. One shard belongs to one trainer thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/text/vocabulary.h"

namespace shoal::data {

// Stands between sentences in the stream of numbers. Never twice in succession, never at the start;
// once at the end of every shard that has words of the vocabulary.
inline constexpr uint32_t kSentenceEnd = UINT32_MAX - 1;

// Reads the numbers of one EncodedShard. Owns a fixed buffer only where the text is tokenised anew.
// Not thread-safe; any number of cursors over one shard.
class EncodedCursor {
 public:
  virtual ~EncodedCursor() = default;
  // Up to items.size() (≥ 1) numbers of words and kSentenceEnd; 0 means the end of the shard. Use
  // blocks of 16 Ki items or so: each is one pread.
  virtual Result<size_t> Read(std::span<uint32_t> items) = 0;
  // The next Read begins at `item`, counted from the shard's start, sentence ends included (so:
  // what position() said at the checkpoint). OutOfRange beyond items(). O(1) on disk, else
  // O(item) at 30 M words/s.
  virtual Status Seek(uint64_t item) = 0;
  virtual uint64_t position() const = 0;
};

// Immutable after Make; Open may be called from any thread.
class EncodedShard {
 public:
  // Reads the shard once and writes its numbers below `scratch` (an existing directory); an empty
  // path means: do not write, tokenise anew. A disk that fills (ENOSPC, EDQUOT, EFBIG) means the
  // same, with a line in the log. Other errors as Tokenizer. At least 15 M words/s a core with the
  // counting before it.
  static Result<EncodedShard> Make(const Corpus& corpus, const Shard& shard,
                                   const Vocabulary& vocabulary,
                                   const std::filesystem::path& scratch);
  EncodedShard(EncodedShard&&) noexcept;
  EncodedShard& operator=(EncodedShard&&) noexcept;
  ~EncodedShard();

  Result<std::unique_ptr<EncodedCursor>> Open() const;
  // Words of the vocabulary in this shard: what an epoch trains.
  uint64_t words() const;
  // words() and the sentence ends.
  uint64_t items() const;
  bool on_disk() const;

 private:
  struct State;
  explicit EncodedShard(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shoal::data
