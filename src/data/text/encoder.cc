#include "data/text/encoder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "data/text/tokenizer.h"

namespace shoal::data {
namespace {

constexpr size_t kBatch = 256;             // tokens looked up at a time
constexpr size_t kWriteItems = 16 * 1024;  // numbers written at a time

// Produces the stream of ids from the text.
class Source {
 public:
  Source(const Corpus& corpus, const Shard& shard, const Vocabulary& vocabulary)
      : tokenizer_(corpus, shard), vocabulary_(vocabulary) {}

  // Gives at least one and at most `room` (≥ kBatch) items; 0 means the end.
  Result<size_t> Read(uint32_t* items, size_t room) {
    size_t n = 0;
    while (n + kBatch <= room) {
      TRY_ASSIGN(const size_t got, tokenizer_.Next(tokens_));
      if (got == 0) break;
      vocabulary_.FindAll(std::span(tokens_).first(got), ids_.data());
      // Branch-free: known and unknown words are both frequent.
      for (size_t i = 0; i < got; ++i) {
        const uint32_t id = ids_[i];
        const bool end = id == kSentenceEnd;
        items[n] = id;
        n += static_cast<size_t>(id != kNoWord && !(end && last_was_end_));
        last_was_end_ = end || (last_was_end_ && id == kNoWord);
      }
    }
    return n;
  }

 private:
  Tokenizer tokenizer_;
  const Vocabulary vocabulary_;
  bool last_was_end_ = true;
  std::array<Token, kBatch> tokens_;
  std::array<uint32_t, kBatch> ids_;
};

class FileCursor final : public EncodedCursor {
 public:
  FileCursor(int fd, uint64_t items) : fd_(fd), items_(items) {}

  Result<size_t> Read(std::span<uint32_t> out) override {
    auto* to = reinterpret_cast<char*>(out.data());
    const size_t bytes = 4 * static_cast<size_t>(std::min<uint64_t>(out.size(), items_ - at_));
    size_t have = 0;
    while (have < bytes) {
      const ssize_t got = ::pread(fd_, to + have, bytes - have, static_cast<off_t>(4 * at_ + have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "cannot read the scratch file of encoded text");
      if (got == 0) return DataLoss("the scratch file of encoded text has shrunk");
      have += static_cast<size_t>(got);
    }
    at_ += bytes / 4;
    return bytes / 4;
  }
  Status Seek(uint64_t item) override {
    if (item > items_) return OutOfRange(fmt::format("item {} of {}", item, items_));
    at_ = item;
    return Status::Ok();
  }
  uint64_t position() const override { return at_; }

 private:
  const int fd_;  // the shard's
  const uint64_t items_;
  uint64_t at_ = 0;
};

class TextCursor final : public EncodedCursor {
 public:
  TextCursor(Corpus corpus, Shard shard, Vocabulary vocabulary, uint64_t items)
      : corpus_(std::move(corpus)),
        shard_(std::move(shard)),
        vocabulary_(std::move(vocabulary)),
        items_(items),
        block_(4 * kBatch) {
    Rewind();
  }

  Result<size_t> Read(std::span<uint32_t> out) override {
    size_t n = 0;
    while (n < out.size()) {
      if (next_ == filled_) {
        TRY_ASSIGN(filled_, source_->Read(block_.data(), block_.size()));
        next_ = 0;
        if (filled_ == 0) break;
      }
      const size_t some = std::min(out.size() - n, filled_ - next_);
      std::copy_n(block_.data() + next_, some, out.data() + n);
      n += some;
      next_ += some;
    }
    at_ += n;
    return n;
  }
  Status Seek(uint64_t item) override {
    if (item > items_) return OutOfRange(fmt::format("item {} of {}", item, items_));
    if (item < at_) Rewind();
    std::array<uint32_t, 4096> discard;
    while (at_ < item) {
      const size_t some = static_cast<size_t>(std::min<uint64_t>(discard.size(), item - at_));
      TRY_ASSIGN(const size_t got, Read(std::span(discard).first(some)));
      if (got == 0) return DataLoss("the text has become shorter since it was encoded");
    }
    return Status::Ok();
  }
  uint64_t position() const override { return at_; }

 private:
  void Rewind() {
    source_ = std::make_unique<Source>(corpus_, shard_, vocabulary_);
    at_ = next_ = filled_ = 0;
  }

  const Corpus corpus_;
  const Shard shard_;
  const Vocabulary vocabulary_;
  const uint64_t items_;
  std::unique_ptr<Source> source_;
  std::vector<uint32_t> block_;
  uint64_t at_ = 0;
  size_t next_ = 0;
  size_t filled_ = 0;
};

// An unlinked file in `directory`.
Result<UniqueFd> OpenScratch(const std::filesystem::path& directory) {
  auto unnamed = OpenFile(directory, O_TMPFILE | O_RDWR, 0600);
  if (unnamed.ok()) return unnamed;
  // For file systems without O_TMPFILE: create a file and unlink it.
  std::string name = (directory / "encoded-XXXXXX").string();
  UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a scratch file in " + directory.string());
  ::unlink(name.c_str());
  return fd;
}

}  // namespace

struct EncodedShard::State {
  State(Corpus c, Shard s, Vocabulary v)
      : corpus(std::move(c)), shard(std::move(s)), vocabulary(std::move(v)) {}
  const Corpus corpus;
  const Shard shard;
  const Vocabulary vocabulary;
  UniqueFd fd;  // -1: tokenise in every epoch
  uint64_t words = 0;
  uint64_t items = 0;
};

EncodedShard::EncodedShard(std::unique_ptr<State> state) : state_(std::move(state)) {}
EncodedShard::EncodedShard(EncodedShard&&) noexcept = default;
EncodedShard& EncodedShard::operator=(EncodedShard&&) noexcept = default;
EncodedShard::~EncodedShard() = default;

Result<EncodedShard> EncodedShard::Make(const Corpus& corpus, const Shard& shard,
                                        const Vocabulary& vocabulary,
                                        const std::filesystem::path& scratch) {
  auto state = std::make_unique<State>(corpus, shard, vocabulary);
  if (!scratch.empty()) {
    TRY_ASSIGN(state->fd, OpenScratch(scratch));
  }
  Source source(corpus, shard, vocabulary);
  std::vector<uint32_t> block(kWriteItems);
  for (;;) {
    TRY_ASSIGN(const size_t got, source.Read(block.data(), block.size()));
    if (got == 0) break;
    state->items += got;
    state->words +=
        got - static_cast<size_t>(std::count(
                  block.begin(), block.begin() + static_cast<ptrdiff_t>(got), kSentenceEnd));
    if (!state->fd.valid()) continue;
    const Status written = WriteAll(
        state->fd.get(), {reinterpret_cast<const char*>(block.data()), got * sizeof block[0]});
    if (written.code() == Code::kResourceExhausted) {
      LogWarning("no room for the encoded text in {}: it is read anew in every epoch ({})",
                 scratch.string(), written.message());
      state->fd.Reset();
    } else if (!written.ok()) {
      return written.With("encoded text in " + scratch.string());
    }
  }
  return EncodedShard(std::move(state));
}

Result<std::unique_ptr<EncodedCursor>> EncodedShard::Open() const {
  if (state_->fd.valid()) {
    return std::unique_ptr<EncodedCursor>(
        std::make_unique<FileCursor>(state_->fd.get(), state_->items));
  }
  return std::unique_ptr<EncodedCursor>(std::make_unique<TextCursor>(
      state_->corpus, state_->shard, state_->vocabulary, state_->items));
}

uint64_t EncodedShard::words() const { return state_->words; }
uint64_t EncodedShard::items() const { return state_->items; }
bool EncodedShard::on_disk() const { return state_->fd.valid(); }

}  // namespace shoal::data
