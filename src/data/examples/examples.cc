#include "data/examples/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/examples/example_parser.h"

namespace shoal::data {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr size_t kSlack = 16;  // readable bytes after the text, for eight digits at a time

bool EndsWord(char c) { return IsBlank(c) || c == '\n' || c == '#'; }

// The word at `at`, for error messages.
std::string WordAt(const char* at, const char* newline) {
  const char* const end = std::find_if(at, newline, EndsWord);
  std::string word(at, static_cast<size_t>(std::min<std::ptrdiff_t>(end - at, 40)));
  for (char& c : word) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return end - at > 40 ? word + "…" : word;
}

// The line number of byte `position` of the file's text.
uint64_t LineOf(const SourceFile& file, uint64_t position) {
  const auto stream = TextStream::Open(file);
  std::vector<char> block(256 * 1024);
  uint64_t line = 1;
  while (stream.ok() && (*stream)->position() < position) {
    const uint64_t left = position - (*stream)->position();
    const auto got = (*stream)->Read(block.data(), std::min<uint64_t>(block.size(), left));
    if (!got.ok() || *got == 0) break;
    line += static_cast<uint64_t>(std::count(block.data(), block.data() + *got, '\n'));
  }
  return line;
}

// The initial buffer size: less than kPiece if the whole text is shorter. Longer lines double it.
size_t FirstPiece(const Corpus& corpus) {
  uint64_t bytes = 4096;
  for (const SourceFile& file : corpus.files())
    bytes += file.compression == Compression::kNone ? file.stored_bytes : kPiece;
  return std::min<uint64_t>(bytes, kPiece);
}

}  // namespace

void ExampleSet::Clear() {
  labels.clear();
  starts.clear();
  starts.Push(0);
  features.clear();
  values.clear();
  fields.clear();
  weights.clear();
  keys.clear();
  feature_end = 0;
  field_end = 0;
}

struct ExampleReader::State {
  State(const Corpus& c, Shard s, ExampleOptions o)
      : corpus(c), shard(std::move(s)), options(o), buffer(FirstPiece(c) + kSlack) {}

  const Corpus corpus;
  const Shard shard;
  const ExampleOptions options;
  size_t segment = 0;                  // the current one, or the next if there is no stream
  std::unique_ptr<TextStream> stream;  // of the current segment; null between segments
  std::vector<char> buffer;
  uint64_t buffer_at = 0;  // place in the file's text of the buffer's first byte
  size_t filled = 0;
  bool at_eof = false;
  bool skipping = false;  // inside a line of the previous shard
  uint64_t bytes_read = 0;

  const Segment& current() const { return shard.segments[segment]; }
  const SourceFile& file() const { return corpus.files()[current().file]; }

  Status OpenSegment() {
    TRY_ASSIGN(stream, TextStream::Open(file()));
    // Starts at the byte before: if that is a newline, the first line of this shard begins here.
    const uint64_t from = current().begin == 0 ? 0 : current().begin - 1;
    TRY(stream->SkipTo(from));
    buffer_at = from;
    filled = 0;
    at_eof = false;
    skipping = current().begin > 0;
    return Status::Ok();
  }

  void CloseSegment() {
    stream.reset();
    ++segment;
  }

  Status TooLong() const {
    return InvalidArgument(fmt::format("{}:{}: got a line of more than {} MiB",
                                       file().path.string(), LineOf(file(), buffer_at),
                                       kMaxExampleLine >> 20));
  }

  // Reads more text into the buffer; at the end of the file adds a newline if it is missing.
  Status Fill() {
    if (filled + kSlack + 1 >= buffer.size()) {
      if (buffer.size() > kMaxExampleLine) return TooLong();
      buffer.resize(2 * buffer.size());
    }
    while (!at_eof && filled + kSlack + 1 < buffer.size()) {
      TRY_ASSIGN(const size_t got,
                 stream->Read(buffer.data() + filled, buffer.size() - kSlack - 1 - filled));
      filled += got;
      bytes_read += got;
      at_eof = got == 0;
    }
    if (at_eof && filled > 0 && buffer[filled - 1] != '\n') buffer[filled++] = '\n';
    std::memset(buffer.data() + filled, 0, kSlack);
    return Status::Ok();
  }

  Status Malformed(const ParseError& fault, const char* line, const char* newline) const {
    const uint64_t position = buffer_at + static_cast<uint64_t>(line - buffer.data());
    return InvalidArgument(fmt::format("{}:{}: got '{}', expected {}", file().path.string(),
                                       LineOf(file(), position), WordAt(fault.at, newline),
                                       fault.expected));
  }

  // Parses the complete lines in the buffer and moves the rest to its front. True at the end of the
  // segment.
  Result<bool> ParseBuffer(ExampleSet* set) {
    const std::unique_ptr<ExampleParser> parser = options.format == ExampleFormat::kCsv
                                                      ? MakeCsvParser(options, set)
                                                      : MakeLibsvmParser(options, set);
    const char* line = buffer.data();
    const char* const end = buffer.data() + filled;
    const uint64_t limit = current().end - std::min(current().end, buffer_at);
    bool done = false;
    while (line < end) {
      done = !skipping && static_cast<uint64_t>(line - buffer.data()) >= limit;
      if (done) break;
      const auto* const newline =
          static_cast<const char*>(std::memchr(line, '\n', static_cast<size_t>(end - line)));
      if (newline == nullptr) break;
      if (!skipping) {
        ParseError fault;
        const bool first = buffer_at == 0 && line == buffer.data();
        if (!first || !parser->IsHeader(line, newline, &fault))
          fault = parser->Parse(line, newline);
        if (fault.at != nullptr) return Malformed(fault, line, newline);
      }
      skipping = false;
      line = newline + 1;
    }
    const auto used = static_cast<size_t>(line - buffer.data());
    // Skipped bytes need not be kept.
    const size_t dropped = skipping ? filled : used;
    std::memmove(buffer.data(), buffer.data() + dropped, filled - dropped);
    buffer_at += dropped;
    filled -= dropped;
    return done || (at_eof && filled == 0);
  }
};

ExampleReader::ExampleReader(const Corpus& corpus, Shard shard, ExampleOptions options)
    : state_(std::make_unique<State>(corpus, std::move(shard), options)) {}
ExampleReader::ExampleReader(ExampleReader&&) noexcept = default;
ExampleReader::~ExampleReader() = default;

Result<bool> ExampleReader::Read(ExampleSet* set) {
  if (state_->segment >= state_->shard.segments.size()) return false;
  if (state_->stream == nullptr) TRY(state_->OpenSegment());
  try {
    TRY(state_->Fill());
    TRY_ASSIGN(const bool ended, state_->ParseBuffer(set));
    if (ended) state_->CloseSegment();
    return true;
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(
        fmt::format("the examples of {} do not fit into memory after {} MiB of text",
                    state_->file().path.string(), state_->bytes_read >> 20));
  }
}

uint64_t ExampleReader::bytes_read() const { return state_->bytes_read; }

Result<ExampleSet> ReadExamples(const Corpus& corpus, const Shard& shard, ExampleOptions options) {
  ExampleReader reader(corpus, shard, options);
  ExampleSet set;
  for (;;) {
    TRY_ASSIGN(const bool more, reader.Read(&set));
    if (!more) return set;
  }
}

}  // namespace shoal::data
