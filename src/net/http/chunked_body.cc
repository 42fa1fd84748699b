#include "net/http/chunked_body.h"

#include <algorithm>
#include <charconv>

namespace shoal::net {
namespace {

constexpr size_t kMaxLine = 4 << 10;
constexpr size_t kMaxOverhead = 16 << 10;

HttpRefusal Bad(std::string detail) { return {400, std::move(detail)}; }

}  // namespace

bool ChunkedDecoder::CollectLine(std::string_view* bytes, std::optional<HttpRefusal>* refusal) {
  while (!bytes->empty()) {
    const char c = bytes->front();
    bytes->remove_prefix(1);
    const bool after_return = line_.ends_with('\r');
    if (c == '\n' && after_return) {
      line_.pop_back();
      return true;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (after_return || ((byte < 0x20 || byte == 0x7f) && c != '\r' && c != '\t')) {
      *refusal =
          Bad("a line of the chunked body does not end with CR LF, or has a control character");
      return false;
    }
    line_ += c;
    if (line_.size() > kMaxLine) {
      *refusal = Bad("a line of the chunked body is longer than 4096 bytes");
      return false;
    }
  }
  return false;
}

std::optional<HttpRefusal> ChunkedDecoder::TakeSize(size_t room) {
  const size_t digits = std::min(line_.find(';'), line_.size());
  const auto [end, error] = std::from_chars(line_.data(), line_.data() + digits, left_, 16);
  // from_chars takes a minus, but not for unsigned numbers.
  if (error == std::errc::result_out_of_range) return HttpRefusal{413, "a chunk is too large"};
  if (error != std::errc() || end != line_.data() + digits)
    return Bad("a chunk's size is no hexadecimal number");
  overhead_ += line_.size() - digits;
  if (overhead_ > kMaxOverhead) return Bad("the chunked body has more than 16 KiB of extensions");
  if (left_ > room) return HttpRefusal{413, "the body is longer than is allowed here"};
  state_ = left_ == 0 ? State::kTrailer : State::kData;
  return std::nullopt;
}

std::optional<HttpRefusal> ChunkedDecoder::TakeLine(size_t room) {
  std::optional<HttpRefusal> refusal;
  if (state_ == State::kLine) {
    refusal = TakeSize(room);
  } else if (state_ == State::kDataEnd) {
    if (!line_.empty()) refusal = Bad("a chunk is longer than its size says");
    state_ = State::kLine;
  } else if (line_.empty()) {
    state_ = State::kDone;
  } else {
    overhead_ += line_.size();
    const size_t colon = line_.find(':');
    if (overhead_ > kMaxOverhead) {
      refusal = HttpRefusal{431, "the trailer is longer than 16 KiB"};
    } else if (colon == std::string::npos ||
               !IsHttpToken(std::string_view(line_).substr(0, colon))) {
      refusal = Bad("a line of the trailer is no header");
    }
  }
  line_.clear();
  return refusal;
}

size_t ChunkedDecoder::Decode(std::string_view bytes, size_t limit, std::string* body,
                              std::optional<HttpRefusal>* refusal) {
  const size_t given = bytes.size();
  while (!bytes.empty() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const size_t part = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
      body->append(bytes.substr(0, part));
      bytes.remove_prefix(part);
      left_ -= part;
      if (left_ == 0) state_ = State::kDataEnd;
      continue;
    }
    if (!CollectLine(&bytes, refusal)) break;
    *refusal = TakeLine(limit - std::min(limit, body->size()));
    if (*refusal) break;
  }
  return given - bytes.size();
}

}  // namespace shoal::net
