// How often each word occurs in a part of the text: workers count their shards, send what they
// found, and somebody merges it into the counts of the whole, from which the Vocabulary is made.
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
  // The bound of memory. When a counting thread holds more different words than this, it forgets
  // those it has seen once, the next time those seen at most twice, and so on (ReduceVocab of
  // word2vec.c). Counts are exact and independent of sharding as long as that does not happen;
  // `forgotten` says. 16 M words are about 1 GiB.
  uint64_t max_words = 16'000'000;
};

// Counts of the shards [first, last) of `count`. Words are distinct and ascend by bytes.
// Plain data; movable.
struct WordCounts {
  uint64_t corpus = 0;  // Corpus::fingerprint
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t count = 1;
  uint64_t words = 0;      // running words
  uint64_t sentences = 0;  // lines with words; one that a cut divides counts on both sides
  uint64_t forgotten = 0;  // running words that the bound of memory made uncounted
  SequenceDigest digest;   // of the words, in order
  std::string not_utf8;    // place of the first word that is not valid UTF-8, or empty

  std::string bytes;             // all words, one after the other
  std::vector<uint8_t> sizes;    // of each
  std::vector<uint64_t> counts;  // of each, ≥ 1

  size_t distinct() const { return sizes.size(); }
  // Bytes for docs/formats/wordcounts.md: sorted words with front coding; checksummed. About half
  // of the text's size.
  std::string Encode() const;
  // Checks everything: order, lengths, sums, checksum. DataLoss says what is wrong.
  static Result<WordCounts> Decode(std::string_view bytes);
};

// Reads shard `index` of `count` in this thread.
Result<WordCounts> CountShard(const Corpus& corpus, uint64_t index, uint64_t count,
                              const CountOptions& options = {});
// Reads shards [first, last), one thread each, and merges. The bound of memory is shared by them.
Result<WordCounts> CountShards(const Corpus& corpus, uint64_t first, uint64_t last, uint64_t count,
                               const CountOptions& options = {});
// Puts parts together; in any order, but without gap or overlap between the smallest first and the
// largest last. FailedPrecondition if the parts are of different corpora ("workers see different
// files") or do not fit. O(words · log parts).
Result<WordCounts> MergeCounts(std::vector<WordCounts> parts);

}  // namespace shoal::data
