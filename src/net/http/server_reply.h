// Replies as bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "net/http/server_exchange.h"

namespace shoal::net {

// "OK", "Not Found", …; "Status" for codes without a name.
std::string_view ReasonPhrase(int status);

enum class ReplyFraming { kLength, kChunked, kUntilClose };

struct ReplyHead {
  int status = 200;
  const HttpHeaders* headers = nullptr;
  ReplyFraming framing = ReplyFraming::kLength;
  uint64_t content_length = 0;  // with kLength
  bool keep_alive = true;
  bool http11 = true;
  WallTime now;  // of Date
};

// Appends status line and headers with the empty line. False, and nothing appended, if a header's
// name is no token or its value has control characters, or the status is none from 200 to 599.
bool AppendReplyHead(const ReplyHead& head, std::string* out);

// The Content-Length among `headers`, if it is there and a number.
std::optional<uint64_t> GivenContentLength(const HttpHeaders& headers);

// Whether a reply of this status has no body, whatever the method.
bool IsBodiless(int status);

}  // namespace shoal::net
