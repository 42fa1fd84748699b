// Word counts of a part of the text. Workers count their shards and send the result; one worker
// merges them into the counts of the whole text, from which the Vocabulary is built.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/text/sequence_digest.h"

namespace shoal::data {

struct CountOptions {
  // Memory limit. A counting thread with more distinct words than this drops those seen once, the
  // next time those seen at most twice, and so on (ReduceVocab of word2vec.c). Counts are exact and
  // independent of sharding while that does not happen (`forgotten` == 0). 16 M words take about 1
  // GiB.
  uint64_t max_words = 16'000'000;
};

// Counts of the shards [first, last) of `count`. Words are distinct and ascending by bytes. Plain
// data; movable.
struct WordCounts {
  uint64_t corpus = 0;  // Corpus::fingerprint
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t count = 1;
  uint64_t words = 0;      // running words
  uint64_t sentences = 0;  // lines with words; a line that is cut counts in both shards
  uint64_t forgotten = 0;  // occurrences dropped to limit memory
  SequenceDigest digest;   // of the words, in order
  std::string not_utf8;    // position of the first word that is not valid UTF-8, or empty

  std::string bytes;             // all words, one after the other
  std::vector<uint8_t> sizes;    // of each
  std::vector<uint64_t> counts;  // of each, ≥ 1

  size_t distinct() const { return sizes.size(); }
  // Checksummed encoding (docs/formats/wordcounts.md): sorted words with front coding. About half
  // the size of the text.
  std::string Encode() const;
  // Decodes and validates order, lengths, sums and checksum. DataLoss says what is wrong.
  static Result<WordCounts> Decode(std::string_view bytes);
};

// Counts shard `index` of `count` in the calling thread.
Result<WordCounts> CountShard(const Corpus& corpus, uint64_t index, uint64_t count,
                              const CountOptions& options = {});
// Counts the shards [first, last), one thread each, and merges. The threads share the memory limit.
Result<WordCounts> CountShards(const Corpus& corpus, uint64_t first, uint64_t last, uint64_t count,
                               const CountOptions& options = {});
// Merges counts, given in any order, that leave no gap and no overlap between the smallest `first`
// and the largest `last`. FailedPrecondition if they are of different corpora ("workers see
// different files") or do not fit together. O(words · log parts).
Result<WordCounts> MergeCounts(std::vector<WordCounts> parts);

}  // namespace shoal::data
