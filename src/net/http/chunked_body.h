// The chunked transfer coding (RFC 9112 §7.1), decoded strictly while it comes. For request bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http/request_head.h"

namespace shoal::net {

class ChunkedDecoder {
 public:
  // Appends the decoded bytes to `body`, of which no more than `limit` may come in all (413).
  // Returns how many of `bytes` it has used: all of them, unless the body ended. Extensions and
  // trailers are checked, bounded (16 KiB in all) and dropped.
  size_t Decode(std::string_view bytes, size_t limit, std::string* body,
                std::optional<HttpRefusal>* refusal);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kLine, kData, kDataEnd, kTrailer, kDone };
  // One line without its CR LF is in line_.
  std::optional<HttpRefusal> TakeLine(size_t room);
  std::optional<HttpRefusal> TakeSize(size_t room);
  // Collects a line; true when it is whole.
  bool CollectLine(std::string_view* bytes, std::optional<HttpRefusal>* refusal);

  State state_ = State::kLine;
  std::string line_;
  uint64_t left_ = 0;    // of the chunk
  size_t overhead_ = 0;  // bytes of extensions and trailers
};

}  // namespace shoal::net
