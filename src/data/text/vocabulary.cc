#include "data/text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "data/text/encoder.h"
#include "data/text/varint.h"
#include "data/text/word_codec.h"
#include "data/text/word_table.h"

namespace shoal::data {
namespace {

constexpr uint32_t kMagic = 0x4f56'4853;  // "SHVO"
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaxSize = uint32_t{1} << 31;
constexpr size_t kKeySlack = 16;  // KeyOf reads so far beyond a word
constexpr size_t kBatch = 128;

}  // namespace

struct Vocabulary::State {
  std::string bytes;             // all words, and kKeySlack
  std::vector<uint64_t> starts;  // of each word in bytes; one more entry
  std::vector<uint64_t> counts;
  uint64_t words = 0;
  uint64_t text_words = 0;
  uint64_t text_sentences = 0;
  uint64_t min_count = 0;
  std::string text_digest;
  WordTable table;

  std::string_view Word(size_t id) const {
    return {bytes.data() + starts[id], static_cast<size_t>(starts[id + 1] - starts[id])};
  }
  void Add(std::string_view word, uint64_t count) {
    if (starts.empty()) starts.push_back(0);
    bytes += word;
    starts.push_back(bytes.size());
    counts.push_back(count);
    words += count;
  }
  // Builds the lookup table. DataLoss for a duplicate word.
  Status Finish() {
    bytes.append(kKeySlack, '\0');
    table = WordTable(counts.size());
    for (size_t id = 0; id < counts.size(); ++id) {
      const std::string_view word = Word(id);
      bool added = false;
      const WordKey key = KeyOf(word.data(), static_cast<uint32_t>(word.size()));
      table.Add(key, word.data(), &added)->value = id;
      if (!added) return DataLoss("a vocabulary holds the word '" + std::string(word) + "' twice");
    }
    return Status::Ok();
  }
};

namespace {

Status NothingLeft(const WordCounts& counts, uint64_t min_count) {
  if (counts.words == 0) return FailedPrecondition("the data hold no word, only whitespace");
  size_t best = 0;
  size_t best_at = 0;
  size_t at = 0;
  for (size_t i = 0; i < counts.distinct(); ++i) {
    if (counts.counts[i] > counts.counts[best]) {
      best = i;
      best_at = at;
    }
    at += counts.sizes[i];
  }
  return FailedPrecondition(fmt::format(
      "no word occurs {} times (min_count): the data have {} words, {} different ones, and the "
      "most "
      "frequent, '{}', occurs {} times; lower min_count or give more text",
      min_count, counts.words, counts.distinct(),
      std::string_view(counts.bytes).substr(best_at, counts.sizes[best]), counts.counts[best]));
}

void Warn(const WordCounts& counts) {
  if (!counts.not_utf8.empty()) {
    LogWarning(
        "the data hold words that are not valid UTF-8 (the first: {}); they are used as they are, "
        "but other programs may refuse the vectors (gensim: unicode_errors='replace')",
        counts.not_utf8);
  }
  if (counts.forgotten > 0) {
    LogWarning(
        "the data hold more different words than are counted at a time; {} of {} words were "
        "forgotten, all of rare ones",
        counts.forgotten, counts.words);
  }
}

}  // namespace

Result<Vocabulary> Vocabulary::Make(const WordCounts& counts, uint64_t min_count) {
  if (counts.first != 0 || counts.last != counts.count) {
    return FailedPrecondition(fmt::format("only shards {} to {} of {} were counted", counts.first,
                                          counts.last, counts.count));
  }
  Warn(counts);
  struct Entry {
    uint64_t count;
    uint64_t start;
    uint8_t size;
  };
  std::vector<Entry> kept;
  uint64_t at = 0;
  for (size_t i = 0; i < counts.distinct(); ++i) {
    if (counts.counts[i] >= min_count) kept.push_back({counts.counts[i], at, counts.sizes[i]});
    at += counts.sizes[i];
  }
  if (kept.empty()) return NothingLeft(counts, min_count);
  if (kept.size() >= kMaxSize) {
    return ResourceExhausted(
        fmt::format("{} different words are too many; raise min_count", kept.size()));
  }
  // The counts are sorted by bytes; a stable sort keeps that order among equal counts.
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Entry& a, const Entry& b) { return a.count > b.count; });
  auto state = std::make_shared<State>();
  for (const Entry& entry : kept) {
    state->Add(std::string_view(counts.bytes).substr(entry.start, entry.size), entry.count);
  }
  state->text_words = counts.words;
  state->text_sentences = counts.sentences;
  state->min_count = min_count;
  state->text_digest = counts.digest.ToString();
  TRY(state->Finish());
  return Vocabulary(std::move(state));
}

uint32_t Vocabulary::size() const { return static_cast<uint32_t>(state_->counts.size()); }
std::string_view Vocabulary::word(uint32_t id) const { return state_->Word(id); }
uint64_t Vocabulary::count(uint32_t id) const { return state_->counts[id]; }
uint64_t Vocabulary::words() const { return state_->words; }
uint64_t Vocabulary::text_words() const { return state_->text_words; }
uint64_t Vocabulary::text_sentences() const { return state_->text_sentences; }
const std::string& Vocabulary::text_digest() const { return state_->text_digest; }
uint64_t Vocabulary::min_count() const { return state_->min_count; }

uint32_t Vocabulary::Find(std::string_view word) const {
  if (word.empty() || word.size() > kMaxWordBytes) return kNoWord;
  char padded[kMaxWordBytes + kKeySlack] = {};
  std::memcpy(padded, word.data(), word.size());
  if (std::memchr(padded, '\0', word.size()) != nullptr) return kNoWord;
  const WordKey key = KeyOf(padded, static_cast<uint32_t>(word.size()));
  const WordTable::Slot* slot = state_->table.Find(key, padded);
  return slot == nullptr ? kNoWord : static_cast<uint32_t>(slot->value);
}

void Vocabulary::FindAll(std::span<const Token> tokens, uint32_t* ids) const {
  const WordTable& table = state_->table;
  std::array<WordKey, kBatch> keys;
  while (!tokens.empty()) {
    const size_t n = std::min(tokens.size(), kBatch);
    for (size_t i = 0; i < n; ++i) {
      keys[i] = KeyOf(tokens[i].bytes, tokens[i].size);
      table.Prefetch(keys[i]);
    }
    for (size_t i = 0; i < n; ++i) {
      if (keys[i].size == 0) {
        ids[i] = kSentenceEnd;
        continue;
      }
      const WordTable::Slot* slot = table.Find(keys[i], tokens[i].bytes);
      ids[i] = slot == nullptr ? kNoWord : static_cast<uint32_t>(slot->value);
    }
    tokens = tokens.subspan(n);
    ids += n;
  }
}

std::string Vocabulary::Encode() const {
  std::string out;
  ByteWriter writer(&out);
  writer.Put(kMagic);
  writer.Put(kVersion);
  writer.Put(state_->min_count);
  writer.Put(state_->text_words);
  writer.Put(state_->text_sentences);
  writer.PutString(state_->text_digest);
  writer.Put(size());
  for (uint32_t id = 0; id < size(); ++id) {
    const std::string_view text = word(id);
    writer.Put(static_cast<uint8_t>(text.size()));
    writer.PutRaw(text.data(), text.size());
    PutVarint(count(id), &out);
  }
  writer.Put(Crc32c(out.data(), out.size()));
  return out;
}

Result<Vocabulary> Vocabulary::Decode(std::string_view bytes) {
  TRY_ASSIGN(ByteReader reader,
             OpenWordBytes(bytes, kMagic, kVersion, "the bytes of a vocabulary"));
  auto state = std::make_shared<State>();
  uint32_t size = 0;
  std::string_view digest;
  TRY(reader.Get(&state->min_count));
  TRY(reader.Get(&state->text_words));
  TRY(reader.Get(&state->text_sentences));
  TRY(reader.GetString(&digest, 256));
  TRY(reader.Get(&size));
  state->text_digest = digest;
  if (size == 0 || size > reader.remaining() / 3) return DataLoss("a vocabulary ends too early");
  for (uint32_t id = 0; id < size; ++id) {
    uint8_t length = 0;
    std::string_view text;
    uint64_t count = 0;
    TRY(reader.Get(&length));
    TRY(reader.GetRaw(length, &text));
    TRY(CheckWord(text));
    TRY(GetVarint(&reader, &count));
    const uint64_t before = id == 0 ? UINT64_MAX : state->counts.back();
    const bool falls = count < before || (count == before && id > 0 && state->Word(id - 1) < text);
    if (count == 0 || count < state->min_count || !(falls || id == 0)) {
      return DataLoss("a vocabulary's words are not in order");
    }
    if (count > state->text_words - state->words) {
      return DataLoss("a vocabulary's counts exceed the words of its text");
    }
    state->Add(text, count);
  }
  if (reader.remaining() != 0) return DataLoss("a vocabulary has bytes left over");
  TRY(state->Finish());
  return Vocabulary(std::move(state));
}

std::string Vocabulary::ToText() const {
  std::string text;
  for (uint32_t id = 0; id < size(); ++id) {
    fmt::format_to(std::back_inserter(text), "{} {}\n", word(id), count(id));
  }
  return text;
}

}  // namespace shoal::data
