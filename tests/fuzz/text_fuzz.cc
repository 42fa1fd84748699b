// What the data room reads from others: a text file in any packing, whose shards must give the
// words of the whole, and the two word lists on the wire. The first byte of an input says which.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "data/text/tokenizer.h"
#include "data/text/vocabulary.h"
#include "data/text/word_counts.h"

namespace {

using namespace shoal;
using namespace shoal::data;

// The checksum would stop nearly every mutation: it is put right, so that what is behind it is met.
std::string WithRightSum(std::string_view bytes) {
  std::string fixed(bytes);
  if (fixed.size() < 4) return fixed;
  const uint32_t sum = Crc32c(fixed.data(), fixed.size() - 4);
  std::memcpy(fixed.data() + fixed.size() - 4, &sum, 4);
  return fixed;
}

void Require(bool condition) {
  if (!condition) std::abort();
}

void TryCounts(std::string_view bytes) {
  const auto counts = WordCounts::Decode(bytes);
  if (!counts.ok()) return;
  Require(WordCounts::Decode(counts->Encode()).ok());
  if (counts->first == 0 && counts->last == counts->count) (void)Vocabulary::Make(*counts, 2);
}

void TryVocabulary(std::string_view bytes) {
  const auto vocabulary = Vocabulary::Decode(bytes);
  if (!vocabulary.ok()) return;
  for (uint32_t id = 0; id < vocabulary->size(); ++id) {
    Require(vocabulary->Find(vocabulary->word(id)) == id);
  }
}

bool ReadWords(const Corpus& corpus, uint64_t index, uint64_t count,
               std::vector<std::string>* words) {
  auto shard = corpus.MakeShard(index, count);
  if (!shard.ok()) return false;
  Tokenizer tokenizer(corpus, std::move(shard).value());
  std::vector<Token> tokens(16);
  for (;;) {
    const auto got = tokenizer.Next(tokens);
    if (!got.ok()) return false;
    if (*got == 0) return true;
    for (size_t i = 0; i < *got; ++i) {
      Require(tokens[i].size <= data::kMaxWordBytes);
      if (!tokens[i].is_sentence_end()) words->emplace_back(tokens[i].view());
    }
  }
}

void TryText(std::string_view bytes) {
  static const int file = ::memfd_create("text", MFD_CLOEXEC);
  Require(::ftruncate(file, 0) == 0 && WriteAllAt(file, bytes, 0).ok());
  const auto corpus = Corpus::Open({"/proc/self/fd/" + std::to_string(file)});
  if (!corpus.ok()) return;
  std::vector<std::string> whole, parts;
  if (!ReadWords(*corpus, 0, 1, &whole)) return;
  for (uint64_t i = 0; i < 5; ++i) Require(ReadWords(*corpus, i, 5, &parts));
  Require(whole == parts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      TryCounts(rest);
      TryCounts(WithRightSum(rest));
      break;
    case 1:
      TryVocabulary(rest);
      TryVocabulary(WithRightSum(rest));
      break;
    default:
      TryText(rest);
  }
  return 0;
}
