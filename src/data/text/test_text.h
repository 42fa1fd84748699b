// Helpers for the tests of this room: files with given content, and a simple tokenizer as a
// reference. Included by tests only.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/corpus/corpus.h"
#include "data/text/tokenizer.h"

namespace shoal::data {

inline std::string Gzip(std::string_view text) {
  z_stream zlib{};
  EXPECT_EQ(deflateInit2(&zlib, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&zlib, text.size()) + 64, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

inline std::string Zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// A directory with files text-0, text-1, … of given bytes.
class TextFiles {
 public:
  TextFiles() : directory_(TempDir::Create("data-test").value()) {}
  explicit TextFiles(const std::vector<std::string>& contents) : TextFiles() {
    for (const std::string& content : contents) Add(content);
  }
  std::filesystem::path Add(std::string_view content) {
    const auto path = directory_.path() / ("text-" + std::to_string(paths_.size()));
    EXPECT_TRUE(WriteFileAtomically(path, content, 0644, false).ok());
    paths_.push_back(path.string());
    return path;
  }
  const std::vector<std::string>& paths() const { return paths_; }
  const std::filesystem::path& directory() const { return directory_.path(); }
  Result<Corpus> Open() const { return Corpus::Open(paths_); }

 private:
  TempDir directory_;
  std::vector<std::string> paths_;
};

// "" is the end of a sentence.
using Words = std::vector<std::string>;

inline std::string Cut(std::string word) {
  if (word.size() <= kMaxWordBytes) return word;
  for (size_t size = kMaxWordBytes; size > kMaxWordBytes - 4; --size) {
    if ((static_cast<uint8_t>(word[size]) & 0xc0) != 0x80) return word.substr(0, size);
  }
  return word.substr(0, kMaxWordBytes);
}

inline void EndSentence(Words* words) {
  if (!words->empty() && !words->back().empty()) words->push_back("");
}

// The reference tokenizer: byte by byte.
inline Words PlainWords(const std::vector<std::string>& texts) {
  Words words;
  for (std::string_view text : texts) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    std::string word;
    const auto finish = [&] {
      if (!word.empty()) words.push_back(Cut(word));
      word.clear();
    };
    for (const char c : text) {
      const bool space = c == ' ' || c == '\t' || c == '\r' || c == '\n';
      if (!space) {
        word += c;
        continue;
      }
      finish();
      if (c == '\n') EndSentence(&words);
    }
    finish();
    EndSentence(&words);
  }
  return words;
}

inline Result<Words> WordsOf(const Corpus& corpus, Shard shard, size_t batch = 64) {
  Tokenizer tokenizer(corpus, std::move(shard));
  std::vector<Token> tokens(batch);
  Words words;
  for (;;) {
    TRY_ASSIGN(const size_t got, tokenizer.Next(tokens));
    if (got == 0) return words;
    for (size_t i = 0; i < got; ++i) words.emplace_back(tokens[i].view());
  }
}

inline Result<Words> WordsOf(const Corpus& corpus, uint64_t index, uint64_t count,
                             size_t batch = 64) {
  TRY_ASSIGN(Shard shard, corpus.MakeShard(index, count));
  return WordsOf(corpus, std::move(shard), batch);
}

inline Words WithoutEnds(const Words& words) {
  Words kept;
  for (const std::string& word : words) {
    if (!word.empty()) kept.push_back(word);
  }
  return kept;
}

// Random texts that are hard to cut: words and lines of all lengths, runs of whitespace, multi-byte
// letters; about `size` bytes, with lines of about `line` bytes. Very long lines may contain very
// long words.
inline std::string RandomText(std::mt19937_64& random, size_t size, size_t line) {
  static const char* const kLetters[] = {
      "a", "b", "c", "e", "x", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x90\x9f"};
  const auto below = [&](uint64_t n) { return random() % n; };
  std::string text;
  while (text.size() < size) {
    const uint64_t kind = below(1000);
    size_t letters = kind < 900 ? 1 + below(9) : kind < 990 ? below(40) : 90 + below(60);
    if (kind == 999 && line > 1'000'000 && below(20) == 0) letters = 20'000 + below(200'000);
    for (size_t i = 0; i < letters; ++i) text += kLetters[below(kind % 3 == 0 ? 8 : 5)];
    const uint64_t space = below(40);
    text += space < 34 ? " " : space < 36 ? "\t" : space < 38 ? "  " : "\r";
    if (below(line / 6 + 1) == 0) text += below(10) == 0 ? "\r\n\n" : "\n";
  }
  if (below(2) == 0 && !text.empty()) text.pop_back();
  return text;
}

}  // namespace shoal::data
