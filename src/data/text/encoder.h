// A shard as word ids, streamed in every epoch. The text is tokenised once into an unlinked scratch
// file, four bytes a word, which the kernel removes with the process; if the disk is too small, it
// is tokenised again in every epoch. One shard belongs to one trainer thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/text/vocabulary.h"

namespace shoal::data {

// Separates sentences in the stream of ids. Never twice in succession, never first; once at the end
// of every shard that has words of the vocabulary.
inline constexpr uint32_t kSentenceEnd = UINT32_MAX - 1;

// Reads the ids of one EncodedShard, which must outlive it. Allocates only if the text is tokenised
// again. Not thread-safe; several cursors may read one shard.
class EncodedCursor {
 public:
  virtual ~EncodedCursor() = default;
  // Reads up to items.size() (≥ 1) ids and kSentenceEnd; 0 means the end of the shard. One pread a
  // call: use blocks of about 16 Ki items.
  virtual Result<size_t> Read(std::span<uint32_t> items) = 0;
  // Moves to `item`, counted from the start of the shard, sentence ends included: a value of
  // position() at a checkpoint. OutOfRange beyond items(). O(1) on disk, else O(item) at 30 M
  // words/s.
  virtual Status Seek(uint64_t item) = 0;
  virtual uint64_t position() const = 0;
};

// Immutable after Make; all calls are thread-safe.
class EncodedShard {
 public:
  // Tokenises the shard and writes its ids to a file in `scratch`, an existing directory. With an
  // empty path, or if the disk is full (ENOSPC, EDQUOT, EFBIG; logged), nothing is written and
  // cursors tokenise. Other errors as Tokenizer. At least 15 M words/s a core, counting included.
  static Result<EncodedShard> Make(const Corpus& corpus, const Shard& shard,
                                   const Vocabulary& vocabulary,
                                   const std::filesystem::path& scratch);
  EncodedShard(EncodedShard&&) noexcept;
  EncodedShard& operator=(EncodedShard&&) noexcept;
  ~EncodedShard();

  Result<std::unique_ptr<EncodedCursor>> Open() const;
  // The number of words of the vocabulary in this shard, which is what an epoch trains.
  uint64_t words() const;
  // words() plus the sentence ends.
  uint64_t items() const;
  bool on_disk() const;

 private:
  struct State;
  explicit EncodedShard(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shoal::data
