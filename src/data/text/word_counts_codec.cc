// Encodes WordCounts (docs/formats/wordcounts.md), which workers send about their shards.
#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "data/text/tokenizer.h"
#include "data/text/varint.h"
#include "data/text/word_codec.h"
#include "data/text/word_counts.h"

namespace shoal::data {
namespace {

constexpr uint32_t kMagic = 0x4357'4853;  // "SHWC"
constexpr uint32_t kVersion = 1;
constexpr size_t kMaxPlace = 8192;

}  // namespace

std::string WordCounts::Encode() const {
  std::string out;
  out.reserve(bytes.size() + 3 * sizes.size() + 128);
  ByteWriter writer(&out);
  writer.Put(kMagic);
  writer.Put(kVersion);
  for (const uint64_t field : {corpus, first, last, count, words, sentences, forgotten,
                               digest.value(), digest.length(), uint64_t{sizes.size()}}) {
    writer.Put(field);
  }
  writer.PutString(std::string_view(not_utf8).substr(0, kMaxPlace));
  std::string_view previous;
  size_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string_view word(bytes.data() + at, sizes[i]);
    at += sizes[i];
    const auto differ = std::mismatch(word.begin(), word.end(), previous.begin(), previous.end());
    const auto shared = static_cast<size_t>(differ.first - word.begin());
    writer.Put(static_cast<uint8_t>(shared));
    writer.Put(static_cast<uint8_t>(word.size() - shared));
    writer.PutRaw(word.data() + shared, word.size() - shared);
    PutVarint(counts[i], &out);
    previous = word;
  }
  writer.Put(Crc32c(out.data(), out.size()));
  return out;
}

namespace {

Status DecodeHead(ByteReader* reader, WordCounts* counts, uint64_t* distinct) {
  uint64_t value = 0;
  uint64_t length = 0;
  for (uint64_t* field :
       {&counts->corpus, &counts->first, &counts->last, &counts->count, &counts->words,
        &counts->sentences, &counts->forgotten, &value, &length, distinct}) {
    TRY(reader->Get(field));
  }
  counts->digest = SequenceDigest::Of(value, length);
  std::string_view place;
  TRY(reader->GetString(&place, kMaxPlace));
  counts->not_utf8 = place;
  if (counts->first >= counts->last || counts->last > counts->count) {
    return DataLoss("word counts name shards that do not exist");
  }
  // A word takes at least three bytes, which bounds what a false count can reserve.
  if (*distinct > reader->remaining() / 3) return DataLoss("word counts end too early");
  return Status::Ok();
}

// Decodes the next word into `word`, which holds the previous one.
Status DecodeWord(ByteReader* reader, std::string* word) {
  uint8_t shared = 0;
  uint8_t more = 0;
  std::string_view suffix;
  TRY(reader->Get(&shared));
  TRY(reader->Get(&more));
  TRY(reader->GetRaw(more, &suffix));
  if (shared > word->size()) return DataLoss("a word shares more than the word before it has");
  const bool rises =
      word->empty() || shared == word->size() ||
      (!suffix.empty() && static_cast<uint8_t>(suffix[0]) > static_cast<uint8_t>((*word)[shared]));
  word->resize(shared);
  word->append(suffix);
  TRY(CheckWord(*word));
  if (!rises || suffix.empty()) return DataLoss("the words do not rise");
  return Status::Ok();
}

}  // namespace

Result<WordCounts> WordCounts::Decode(std::string_view encoded) {
  TRY_ASSIGN(ByteReader reader, OpenWordBytes(encoded, kMagic, kVersion, "word counts"));
  WordCounts result;
  uint64_t distinct = 0;
  TRY(DecodeHead(&reader, &result, &distinct));
  result.sizes.reserve(distinct);
  result.counts.reserve(distinct);
  std::string word;
  uint64_t sum = result.forgotten;
  for (uint64_t i = 0; i < distinct; ++i) {
    TRY(DecodeWord(&reader, &word));
    uint64_t occurs = 0;
    TRY(GetVarint(&reader, &occurs));
    if (occurs == 0 || __builtin_add_overflow(sum, occurs, &sum)) {
      return DataLoss("a word's count is impossible");
    }
    result.bytes += word;
    result.sizes.push_back(static_cast<uint8_t>(word.size()));
    result.counts.push_back(occurs);
  }
  if (reader.remaining() != 0) return DataLoss("word counts have bytes left over");
  if (sum != result.words || result.digest.length() != result.words) {
    return DataLoss("word counts do not add up to the number of words");
  }
  return result;
}

}  // namespace shoal::data
