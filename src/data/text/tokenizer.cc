#include "data/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "data/text/whitespace.h"

namespace shoal::data {
namespace {

constexpr size_t kBuffer = 256 * 1024;
constexpr size_t kSlack = 128;  // readable bytes behind the buffer: for whole SIMD blocks and keys
constexpr size_t kScanWords = 64;  // 4 KiB are scanned at a time: masks and text stay in L1
// From this length on a word is certainly truncated, so that the rest need not be kept.
constexpr size_t kCertainlyCut = 128;
static_assert(kBuffer >= 2 * kLineSearch + 2 * kCertainlyCut);

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// The number of bytes of a long word to keep.
uint32_t CutWord(const char* bytes) {
  for (size_t size = kMaxWordBytes; size > kMaxWordBytes - 4; --size) {
    const bool inside = (static_cast<uint8_t>(bytes[size]) & 0xc0) == 0x80;
    if (!inside) return static_cast<uint32_t>(size);
  }
  return kMaxWordBytes;  // no UTF-8 at all
}

}  // namespace

// Reads the text through one buffer. A *region* is the part of the buffer whose words may be
// returned now; it ends at the end of the buffer, or at the end of the segment once that is in the
// buffer.
struct Tokenizer::State {
  State(const Corpus& c, Shard s) : corpus(c), shard(std::move(s)), buffer(kBuffer + kSlack) {}

  const Corpus corpus;
  const Shard shard;

  std::unique_ptr<TextStream> stream;  // of the current segment; null between segments
  size_t segment = 0;                  // the current one, or the next if there is no stream
  std::vector<char> buffer;
  uint64_t buffer_at = 0;  // place in the file's text of the buffer's first byte
  size_t filled = 0;       // bytes of text in the buffer
  bool at_eof = false;

  size_t word_start = 0;       // the unfinished word, or whitespace, begins here
  size_t scanned = 0;          // masks are made up to here
  size_t region_end = 0;       // see above
  bool region_is_last = true;  // of its segment
  bool skipping = false;       // inside a word of the previous shard, or a truncated one
  bool last_was_end = true;
  uint64_t bytes_read = 0;
  size_t file = 0;  // of the buffer's content

  std::array<uint64_t, kScanWords> spaces{};
  std::array<uint64_t, kScanWords> newlines{};
  size_t mask = kScanWords;  // next mask to look at
  size_t masks = 0;          // how many there are
  size_t masks_at = 0;       // place in the buffer of the first mask's first byte

  const Segment& Current() const { return shard.segments[segment]; }

  Status Fill();
  Status OpenSegment();
  void FindStart();
  void SetRegion();
  size_t MovedCut(size_t at) const;
  Status Advance();
  void Scan();
  size_t Emit(std::span<Token> tokens, size_t n);
  void SkipWord();
};

// Reads until the buffer is full or the text ends.
Status Tokenizer::State::Fill() {
  while (filled < kBuffer && !at_eof) {
    TRY_ASSIGN(const size_t got, stream->Read(buffer.data() + filled, kBuffer - filled));
    at_eof = got == 0;
    filled += got;
    bytes_read += got;
  }
  return Status::Ok();
}

Status Tokenizer::State::OpenSegment() {
  const Segment& now = Current();
  file = now.file;
  TRY_ASSIGN(stream, TextStream::Open(corpus.files()[now.file]));
  buffer_at = now.begin == 0 ? 0 : now.begin - 1;  // the byte before tells whether a word begins
  TRY(stream->SkipTo(buffer_at));
  filled = 0;
  at_eof = false;
  skipping = false;
  TRY(Fill());
  FindStart();
  SetRegion();
  return Status::Ok();
}

// The final position of a cut at buffer[at], given the byte before it and kLineSearch bytes after
// it: after the next newline, at the end of the text, or unchanged.
size_t Tokenizer::State::MovedCut(size_t at) const {
  const size_t from = at - 1;
  const size_t until = std::min(filled, from + kLineSearch);
  if (from >= until) return filled;
  const void* newline = std::memchr(buffer.data() + from, '\n', until - from);
  if (newline != nullptr) {
    return static_cast<size_t>(static_cast<const char*>(newline) - buffer.data()) + 1;
  }
  return until - from < kLineSearch ? filled : at;
}

void Tokenizer::State::FindStart() {
  word_start = 0;
  if (Current().begin > 0) {
    word_start = MovedCut(1);
    skipping = word_start == 1 && !IsSpace(buffer[0]);
  } else if (std::string_view(buffer.data(), filled).starts_with("\xef\xbb\xbf")) {
    word_start = 3;  // a byte order mark is no part of the first word
  }
}

// Sets the end of the region and whether the segment ends there.
void Tokenizer::State::SetRegion() {
  const uint64_t end = Current().end;
  const uint64_t buffered_to = buffer_at + filled;
  region_is_last = at_eof;
  region_end = filled;
  if (end != kEndOfFile && (at_eof ? end <= buffered_to : end - 1 + kLineSearch <= buffered_to)) {
    const auto at = static_cast<size_t>(end - buffer_at);
    region_is_last = true;
    region_end = MovedCut(at);
    // A word that begins before the cut belongs to this shard up to its end or truncation.
    if (region_end == at && !IsSpace(buffer[at - 1])) {
      while (region_end < filled && region_end < at + kCertainlyCut && !IsSpace(buffer[region_end]))
        ++region_end;
    }
  } else if (end != kEndOfFile && !at_eof && end - 1 < buffered_to) {
    region_end = std::max(word_start, static_cast<size_t>(end - 1 - buffer_at));
  }
  if (region_is_last) {
    // The end of a segment ends its last sentence. The byte there is not read again, so that it may
    // be overwritten.
    region_end = std::max(region_end, word_start);
    buffer[region_end++] = '\n';
  }
  if (skipping) SkipWord();
  scanned = word_start;
  mask = masks = 0;
}

void Tokenizer::State::SkipWord() {
  while (word_start < region_end && !IsSpace(buffer[word_start])) ++word_start;
  skipping = word_start == region_end;
}

// Loads the next region of this or the next segment. Leaves `stream` null at the end of the shard.
Status Tokenizer::State::Advance() {
  if (stream != nullptr && !region_is_last) {
    const size_t kept = filled - word_start;
    std::memmove(buffer.data(), buffer.data() + word_start, kept);
    buffer_at += word_start;
    filled = kept;
    word_start = 0;
    TRY(Fill());
    SetRegion();
    return Status::Ok();
  }
  if (stream != nullptr) ++segment;
  stream.reset();
  if (segment < shard.segments.size()) TRY(OpenSegment());
  return Status::Ok();
}

void Tokenizer::State::Scan() {
  const size_t size = std::min(region_end - scanned, 64 * kScanWords);
  masks = (size + 63) / 64;
  ScanWhitespace(buffer.data() + scanned, masks, spaces.data(), newlines.data());
  if (const size_t rest = size % 64; rest != 0) {
    spaces[masks - 1] &= (uint64_t{1} << rest) - 1;
  }
  masks_at = scanned;
  mask = 0;
  scanned += size;
}

// Returns the words left in the masks, as far as there is room; n tokens are present already.
size_t Tokenizer::State::Emit(std::span<Token> tokens, size_t n) {
  const char* const text = buffer.data();
  Token* const out = tokens.data();
  const size_t room = tokens.size();
  size_t start = word_start;
  for (; mask < masks; ++mask) {
    uint64_t bits = spaces[mask];
    const size_t base = masks_at + 64 * mask;
    while (bits != 0) {
      if (n + 2 > room) {
        spaces[mask] = bits;
        word_start = start;
        return n;
      }
      const auto bit = static_cast<unsigned>(std::countr_zero(bits));
      bits &= bits - 1;
      const size_t size = base + bit - start;
      if (size != 0) {
        const uint32_t kept =
            size <= kMaxWordBytes ? static_cast<uint32_t>(size) : CutWord(text + start);
        out[n++] = {text + start, kept};
        last_was_end = false;
      }
      start = base + bit + 1;
      if ((newlines[mask] >> bit & 1) != 0 && !last_was_end) {
        out[n++] = {text + start - 1, 0};
        last_was_end = true;
      }
    }
  }
  word_start = start;
  return n;
}

Tokenizer::Tokenizer(const Corpus& corpus, Shard shard)
    : state_(std::make_unique<State>(corpus, std::move(shard))) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<size_t> Tokenizer::Next(std::span<Token> tokens) {
  State& s = *state_;
  SHOAL_CHECK(tokens.size() >= 2);
  size_t n = 0;
  for (;;) {
    n = s.Emit(tokens, n);
    if (n + 2 > tokens.size()) return n;
    if (s.scanned < s.region_end) {
      s.Scan();
      continue;
    }
    if (!s.region_is_last && !s.skipping && s.region_end - s.word_start >= kCertainlyCut) {
      const char* word = s.buffer.data() + s.word_start;
      tokens[n++] = {word, CutWord(word)};
      s.last_was_end = false;
      s.skipping = true;
    }
    if (s.skipping) s.word_start = s.region_end;
    if (n > 0) return n;  // moving the buffer on would move the tokens away
    TRY(s.Advance());
    if (s.stream == nullptr) return size_t{0};
  }
}

std::string Tokenizer::PlaceOf(const Token& token) const {
  const auto into = static_cast<uint64_t>(token.bytes - state_->buffer.data());
  return fmt::format("{}, byte {}", state_->corpus.files()[state_->file].path.string(),
                     state_->buffer_at + into);
}

uint64_t Tokenizer::bytes_read() const { return state_->bytes_read; }

bool IsUtf8(std::string_view bytes) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* const end = p + bytes.size();
  const auto in = [](uint8_t x, uint8_t low, uint8_t high) { return x >= low && x <= high; };
  while (p < end) {
    const uint8_t lead = *p++;
    if (lead < 0x80) continue;
    const size_t more = in(lead, 0xc2, 0xdf)   ? 1
                        : in(lead, 0xe0, 0xef) ? 2
                        : in(lead, 0xf0, 0xf4) ? 3
                                               : 0;
    if (more == 0 || static_cast<size_t>(end - p) < more) return false;
    // The first continuation byte has narrower bounds: no overlong forms, surrogates, or beyond
    // U+10FFFF.
    const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (!in(p[0], low, high)) return false;
    for (size_t i = 1; i < more; ++i) {
      if (!in(p[i], 0x80, 0xbf)) return false;
    }
    p += more;
  }
  return true;
}

}  // namespace shoal::data
