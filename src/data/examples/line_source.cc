// Examples from files of lines: finds the lines, and adds file and line to errors.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "data/examples/csv.h"
#include "data/examples/example_parser.h"
#include "data/examples/example_source.h"
#include "data/formats/cell_number.h"

namespace shoal::data {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr size_t kSlack = 16;     // readable bytes after the text, for eight digits at a time
constexpr uint64_t kTail = 4096;  // that is read behind a segment at a time

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

// The header that may be repeated within a file; empty: none.
std::string HeaderOf(const ExampleOptions& options) {
  const bool known = options.csv != nullptr && IsOnlyHeader(options.csv->schema.names);
  return known ? options.csv->header : "";
}

class LineSource final : public ExampleSource {
 public:
  LineSource(const Corpus& c, Shard s, const ExampleOptions& o)
      : corpus(c),
        shard(std::move(s)),
        options(o),
        header(HeaderOf(o)),
        bad(o.max_bad),
        buffer(FirstPiece(c) + kSlack) {}

  Result<bool> Read(const ExampleTarget& target) override {
    if (segment >= shard.segments.size()) {
      TRY(bad.Finish());
      if (repeated > 0 && target.set != nullptr) TellRepeated();
      return false;
    }
    if (stream == nullptr) TRY(OpenSegment());
    TRY(Fill());
    TRY_ASSIGN(const bool ended, ParseBuffer(target));
    if (ended) CloseSegment();
    return true;
  }
  uint64_t bytes_read() const override { return bytes; }

 private:
  const Corpus corpus;
  const Shard shard;
  const ExampleOptions options;
  const std::string header;  // empty: none
  BadRows bad;
  uint64_t repeated = 0;  // headers within a file
  std::string first_repeated;
  size_t segment = 0;                  // the current one, or the next if there is no stream
  std::unique_ptr<TextStream> stream;  // of the current segment; null between segments
  std::vector<char> buffer;
  uint64_t buffer_at = 0;  // place in the file's text of the buffer's first byte
  size_t filled = 0;
  bool at_eof = false;
  bool skipping = false;  // inside a line of the previous shard
  uint64_t bytes = 0;     // of text, that were read

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
    // Behind a segment that ends within the file no more than its last line is needed.
    const uint64_t left = current().end - std::min(current().end, buffer_at);
    uint64_t until = buffer.size() - kSlack - 1;
    if (current().end != kEndOfFile)
      until = std::min(until, std::max(left, uint64_t{filled}) + kTail);
    while (!at_eof && filled < until) {
      TRY_ASSIGN(const size_t got, stream->Read(buffer.data() + filled, until - filled));
      filled += got;
      bytes += got;
      at_eof = got == 0;
    }
    if (at_eof && filled > 0 && buffer[filled - 1] != '\n') buffer[filled++] = '\n';
    std::memset(buffer.data() + filled, 0, kSlack);
    return Status::Ok();
  }

  // Counts it where malformed rows are tolerated.
  Status Malformed(const ParseError& fault, const char* line, const char* newline) {
    const uint64_t position = buffer_at + static_cast<uint64_t>(line - buffer.data());
    const std::string got =
        fault.got.empty()
            ? fmt::format("'{}'", FirstWordOf({fault.at, static_cast<size_t>(newline - fault.at)}))
            : fault.got;
    std::string what = fmt::format("got {}, expected {}", got, fault.expected);
    const uint64_t number = bad.tolerates() ? 0 : LineOf(file(), position);
    if (bad.tolerates()) return bad.Count({file().path.string(), position, number, what});
    return InvalidArgument(fmt::format("{}:{}: {}", file().path.string(), number, what));
  }

  // True for the header again, as in files that were put together. It is no example.
  bool RepeatsHeader(const char* line, const char* newline) const {
    constexpr size_t kMark = 4;  // bytes that BareLine may take away
    const auto size = static_cast<size_t>(newline - line);
    if (header.empty() || size < header.size() || size > header.size() + kMark) return false;
    return BareLine({line, size}) == header;
  }

  void CountRepeated(const char* line) {
    if (repeated++ > 0) return;
    const uint64_t position = buffer_at + static_cast<uint64_t>(line - buffer.data());
    first_repeated = fmt::format("{}:{}", file().path.string(), LineOf(file(), position));
  }

  void TellRepeated() const {
    LogWarning(
        "rows that repeat the header are left out: {}, the first: {}; if the first line is no "
        "header, set header to no",
        repeated, first_repeated);
  }

  std::string HeaderFault(const ParseError& fault) const {
    return fmt::format("{}:1: expected {}", file().path.string(), fault.expected);
  }

  std::unique_ptr<ExampleParser> MakeParser(const ExampleTarget& target) const {
    switch (options.format) {
      case ExampleFormat::kCsv:
      case ExampleFormat::kTsv:
        return MakeCsvParser(*options.csv, target.sink);
      case ExampleFormat::kJsonLines:
        return MakeJsonParser(*options.csv, target.sink);
      default:
        return MakeLibsvmParser(options, target.set);
    }
  }

  // Parses the complete lines in the buffer and moves the rest to its front. True at the end of the
  // segment.
  Result<bool> ParseBuffer(const ExampleTarget& target) {
    const std::unique_ptr<ExampleParser> parser = MakeParser(target);
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
        const bool is_header = first && parser->IsHeader(line, newline, &fault);
        const bool again = !first && RepeatsHeader(line, newline);
        if (!is_header && !again) fault = parser->Parse(line, newline);
        if (again) {
          CountRepeated(line);
        } else if (fault.at == nullptr) {
          bad.CountGood();
        } else if (const Status status = Malformed(fault, line, newline);
                   is_header || !status.ok()) {
          return status.ok() ? InvalidArgument(HeaderFault(fault)) : status;
        }
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

}  // namespace

std::unique_ptr<ExampleSource> MakeLineSource(const Corpus& corpus, Shard shard,
                                              const ExampleOptions& options) {
  return std::make_unique<LineSource>(corpus, std::move(shard), options);
}

}  // namespace shoal::data
