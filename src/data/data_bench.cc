// Measures tokenizing, counting and encoding. `data_bench` generates English-like text (Zipf's
// law); SHOAL_BENCH_TEXT names a real one. The counter words/s refers to the thread's own CPU time.
#include <benchmark/benchmark.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include "base/file.h"
#include "data/text/encoder.h"
#include "data/text/word_table.h"

namespace shoal::data {
namespace {

// 30 MB of words of 2 to 12 letters, the r-th most frequent with probability ~ 1/(r + 2.7).
std::string MadeText() {
  std::mt19937_64 random(1);
  std::vector<std::string> words(200'000);
  for (std::string& word : words) {
    for (size_t n = 2 + random() % 4 + random() % 8; n > 0; --n) {
      word += static_cast<char>('a' + random() % 26);
    }
  }
  std::uniform_real_distribution<double> uniform(std::log(2.7), std::log(200'002.7));
  std::string text;
  while (text.size() < 30'000'000) {
    const auto rank = static_cast<size_t>(std::exp(uniform(random)) - 2.7);
    text += words[std::min(rank, words.size() - 1)];
    text += random() % 230 == 0 ? '\n' : ' ';
  }
  return text;
}

struct Bench {
  Bench() {
    const char* path = std::getenv("SHOAL_BENCH_TEXT");
    if (path == nullptr) SHOAL_CHECK(WriteFileAtomically(made, MadeText(), 0644, false).ok());
    corpus.emplace(Corpus::Open({path != nullptr ? path : made.string()}).value());
    shard = corpus->MakeShard(0, 1).value();
    vocabulary.emplace(Vocabulary::Make(CountShard(*corpus, 0, 1).value(), 5).value());
  }
  static const Bench& Get() {
    static const Bench bench;
    return bench;
  }
  TempDir scratch = TempDir::Create().value();
  std::filesystem::path made = scratch.path() / "text";
  std::optional<Corpus> corpus;
  Shard shard;
  std::optional<Vocabulary> vocabulary;
};

// Runs before the measured function begins, so that `valgrind --tool=callgrind --toggle-collect` of
// one function counts nothing else.
void Prepare(const benchmark::State&) { Bench::Get(); }

void Rate(benchmark::State& state) {
  const double words = static_cast<double>(Bench::Get().vocabulary->text_words());
  state.counters["words/s"] = benchmark::Counter(words * static_cast<double>(state.iterations()),
                                                 benchmark::Counter::kIsRate);
}

void Tokenise(benchmark::State& state) {
  const Bench& bench = Bench::Get();
  for (auto _ : state) {
    Tokenizer tokenizer(*bench.corpus, bench.shard);
    std::array<Token, 256> tokens;
    while (tokenizer.Next(tokens).value() != 0) benchmark::DoNotOptimize(tokens);
  }
  Rate(state);
}
BENCHMARK(Tokenise)->Setup(Prepare);

void Count(benchmark::State& state) {
  const Bench& bench = Bench::Get();
  for (auto _ : state) benchmark::DoNotOptimize(CountShard(*bench.corpus, 0, 1).value());
  Rate(state);
}
BENCHMARK(Count)->Setup(Prepare);

void Encode(benchmark::State& state) {
  const Bench& bench = Bench::Get();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        EncodedShard::Make(*bench.corpus, bench.shard, *bench.vocabulary, bench.scratch.path())
            .value());
  }
  Rate(state);
}
BENCHMARK(Encode)->Setup(Prepare);

// Everything that a trainer waits for.
void CountAndEncode(benchmark::State& state) {
  const Bench& bench = Bench::Get();
  for (auto _ : state) {
    const auto vocabulary = Vocabulary::Make(CountShard(*bench.corpus, 0, 1).value(), 5).value();
    benchmark::DoNotOptimize(
        EncodedShard::Make(*bench.corpus, bench.shard, vocabulary, bench.scratch.path()).value());
  }
  Rate(state);
}
BENCHMARK(CountAndEncode)->Setup(Prepare);

// The same counting with boost::unordered_flat_map, keyed by owned strings and looked up by views.
struct ViewHash {
  using is_transparent = void;
  using is_avalanching = void;
  size_t operator()(std::string_view word) const {
    // This hash reads beyond the word: tokens allow that, and short strings have space for it.
    return KeyOf(word.data(), static_cast<uint32_t>(word.size())).hash;
  }
};
struct ViewEqual {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
};

template <typename Hash>
void CountWithFlatMap(benchmark::State& state) {
  const Bench& bench = Bench::Get();
  for (auto _ : state) {
    boost::unordered_flat_map<std::string, uint64_t, Hash, ViewEqual> counts;
    Tokenizer tokenizer(*bench.corpus, bench.shard);
    std::array<Token, 256> tokens;
    while (const size_t got = tokenizer.Next(tokens).value()) {
      for (size_t i = 0; i < got; ++i) {
        if (tokens[i].is_sentence_end()) continue;
        const auto found = counts.find(tokens[i].view());
        if (found != counts.end()) {
          ++found->second;
        } else {
          std::string word(tokens[i].view());
          word.reserve(word.size() + 16);
          counts.emplace(std::move(word), 1);
        }
      }
    }
    benchmark::DoNotOptimize(counts);
  }
  Rate(state);
}
struct StdHash {
  using is_transparent = void;
  size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
};
BENCHMARK(CountWithFlatMap<ViewHash>)->Setup(Prepare);
BENCHMARK(CountWithFlatMap<StdHash>)->Setup(Prepare);

}  // namespace
}  // namespace shoal::data
