// Counts shards and merges counts; word_counts_codec.cc encodes them.
#include "data/text/word_counts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <thread>
#include <utility>

#include "data/text/tokenizer.h"
#include "data/text/word_table.h"

namespace shoal::data {
namespace {

constexpr size_t kBatch = 128;

// Counts words in a table of bounded size.
class Counter {
 public:
  Counter(uint64_t max_words, WordCounts* result) : max_words_(max_words), result_(result) {}

  void Count(std::span<const Token> tokens, const Tokenizer& tokenizer) {
    std::array<WordKey, kBatch> keys;
    for (size_t i = 0; i < tokens.size(); ++i) {
      keys[i] = KeyOf(tokens[i].bytes, tokens[i].size);
      table_.Prefetch(keys[i]);
    }
    uint64_t words = 0;
    SequenceDigest digest = result_->digest;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (keys[i].size == 0) continue;
      ++words;
      digest.Add(keys[i].hash);
      bool added = false;
      ++table_.Add(keys[i], tokens[i].bytes, &added)->value;
      if (added) [[unlikely]]
        Added(tokens[i], tokenizer);
    }
    result_->digest = digest;
    result_->words += words;
    result_->sentences += tokens.size() - words;
  }

  // Moves the table's content into the result, sorted by bytes.
  void Finish();

 private:
  void Added(const Token& token, const Tokenizer& tokenizer) {
    if (result_->not_utf8.empty() && !IsUtf8(token.view())) {
      result_->not_utf8 = tokenizer.PlaceOf(token);
    }
    if (table_.size() > max_words_) Forget();
  }

  void Forget() {
    ++forget_;
    for (const WordTable::Slot& slot : table_.slots()) {
      if (slot.size != 0 && slot.value <= forget_) result_->forgotten += slot.value;
    }
    table_.Forget(forget_);
  }

  const uint64_t max_words_;
  WordCounts* const result_;
  WordTable table_;
  uint64_t forget_ = 0;
};

void Counter::Finish() {
  struct Entry {
    uint64_t prefix;  // the first 8 bytes, so that nearly all comparisons are of two registers
    const WordTable::Slot* slot;
  };
  std::vector<Entry> entries;
  entries.reserve(table_.size());
  size_t bytes = 0;
  for (const WordTable::Slot& slot : table_.slots()) {
    if (slot.size == 0) continue;
    const uint64_t first = slot.size <= 16 ? slot.a : LoadWord(table_.WordOf(slot).data());
    entries.push_back({__builtin_bswap64(first), &slot});
    bytes += slot.size;
  }
  std::sort(entries.begin(), entries.end(), [&](const Entry& x, const Entry& y) {
    if (x.prefix != y.prefix) return x.prefix < y.prefix;
    return table_.WordOf(*x.slot) < table_.WordOf(*y.slot);
  });
  result_->bytes.reserve(bytes);
  result_->sizes.reserve(entries.size());
  result_->counts.reserve(entries.size());
  for (const Entry& entry : entries) {
    result_->bytes += table_.WordOf(*entry.slot);
    result_->sizes.push_back(static_cast<uint8_t>(entry.slot->size));
    result_->counts.push_back(entry.slot->value);
  }
}

// Iterates over the words of sorted counts.
struct Walk {
  explicit Walk(const WordCounts& c) : counts(c) {}
  bool done() const { return at == counts.sizes.size(); }
  std::string_view word() const { return {counts.bytes.data() + byte, counts.sizes[at]}; }
  void Next() { byte += counts.sizes[at++]; }
  const WordCounts& counts;
  size_t at = 0;
  size_t byte = 0;
};

void Put(std::string_view word, uint64_t count, WordCounts* to) {
  to->bytes += word;
  to->sizes.push_back(static_cast<uint8_t>(word.size()));
  to->counts.push_back(count);
}

// `a` must directly precede `b`.
WordCounts MergeTwo(WordCounts a, WordCounts b) {
  WordCounts both;
  both.corpus = a.corpus;
  both.first = a.first;
  both.last = b.last;
  both.count = a.count;
  both.words = a.words + b.words;
  both.sentences = a.sentences + b.sentences;
  both.forgotten = a.forgotten + b.forgotten;
  both.digest = a.digest;
  both.digest.Append(b.digest);
  both.not_utf8 = a.not_utf8.empty() ? std::move(b.not_utf8) : std::move(a.not_utf8);
  both.bytes.reserve(std::max(a.bytes.size(), b.bytes.size()));
  both.sizes.reserve(std::max(a.distinct(), b.distinct()));
  both.counts.reserve(std::max(a.distinct(), b.distinct()));
  Walk x(a), y(b);
  while (!x.done() || !y.done()) {
    const int order = y.done() ? -1 : x.done() ? 1 : x.word().compare(y.word());
    uint64_t count = 0;
    const std::string_view word = order <= 0 ? x.word() : y.word();
    if (order <= 0) count += a.counts[x.at];
    if (order >= 0) count += b.counts[y.at];
    Put(word, count, &both);
    if (order <= 0) x.Next();
    if (order >= 0) y.Next();
  }
  return both;
}

}  // namespace

Result<WordCounts> CountShard(const Corpus& corpus, uint64_t index, uint64_t count,
                              const CountOptions& options) {
  TRY_ASSIGN(Shard shard, corpus.MakeShard(index, count));
  WordCounts result;
  result.corpus = corpus.fingerprint();
  result.first = index;
  result.last = index + 1;
  result.count = count;
  Tokenizer tokenizer(corpus, std::move(shard));
  Counter counter(std::max<uint64_t>(options.max_words, 1), &result);
  std::array<Token, kBatch> tokens;
  for (;;) {
    TRY_ASSIGN(const size_t got, tokenizer.Next(tokens));
    if (got == 0) break;
    counter.Count(std::span(tokens).first(got), tokenizer);
  }
  counter.Finish();
  return result;
}

Result<WordCounts> CountShards(const Corpus& corpus, uint64_t first, uint64_t last, uint64_t count,
                               const CountOptions& options) {
  if (first >= last || last > count) return InvalidArgument("no shards to count");
  const size_t threads = last - first;
  const CountOptions own{std::max<uint64_t>(1, options.max_words / threads)};
  std::vector<Result<WordCounts>> results(threads, Internal("not counted"));
  std::vector<std::thread> running;
  for (size_t i = 1; i < threads; ++i) {
    running.emplace_back([&, i] { results[i] = CountShard(corpus, first + i, count, own); });
  }
  results[0] = CountShard(corpus, first, count, own);
  for (std::thread& thread : running) thread.join();
  std::vector<WordCounts> parts;
  for (auto& result : results) {
    TRY_ASSIGN(WordCounts part, std::move(result));
    parts.push_back(std::move(part));
  }
  return MergeCounts(std::move(parts));
}

Result<WordCounts> MergeCounts(std::vector<WordCounts> parts) {
  if (parts.empty()) return InvalidArgument("no counts to merge");
  std::sort(parts.begin(), parts.end(),
            [](const WordCounts& a, const WordCounts& b) { return a.first < b.first; });
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].corpus != parts[0].corpus) {
      return FailedPrecondition(
          "the workers see different data: the sizes or the number of the data files differ "
          "between "
          "them; give all of them the same files");
    }
    if (parts[i].count != parts[0].count || parts[i].first != parts[i - 1].last) {
      return FailedPrecondition(
          "the counted shards do not fit together: shard " + std::to_string(parts[i].first) +
          " of " + std::to_string(parts[i].count) + " follows shard " +
          std::to_string(parts[i - 1].last) + " of " + std::to_string(parts[0].count));
    }
  }
  // Merges neighbours until one part is left, so that each word is copied log(parts) times.
  while (parts.size() > 1) {
    std::vector<WordCounts> merged;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      merged.push_back(MergeTwo(std::move(parts[i]), std::move(parts[i + 1])));
    }
    if (parts.size() % 2 == 1) merged.push_back(std::move(parts.back()));
    parts = std::move(merged);
  }
  return std::move(parts.front());
}

}  // namespace shoal::data
