// Fuzz entry: HTTP requests as the server reads them, head and chunked body. Nothing crashes,
// nothing depends on how the network cut the bytes, and what is taken is what handlers rely on.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "net/http/chunked_body.h"
#include "net/http/request_head.h"

namespace {

using shoal::net::ChunkedDecoder;
using shoal::net::HeadScanner;
using shoal::net::HttpRefusal;
using shoal::net::HttpServerRequest;
using shoal::net::RequestFraming;
using shoal::net::RequestHeadLimits;

struct Body {
  std::string text = {};
  size_t used = 0;
  int status = 0;
  bool done = false;
  bool operator==(const Body&) const = default;
};

Body Decode(std::string_view bytes, size_t step) {
  constexpr size_t kLimit = 1000;
  Body body;
  ChunkedDecoder decoder;
  std::optional<HttpRefusal> refusal;
  while (body.used < bytes.size() && !refusal && !decoder.done())
    body.used += decoder.Decode(bytes.substr(body.used, step), kLimit, &body.text, &refusal);
  if (body.text.size() > kLimit) std::abort();
  body.done = decoder.done();
  if (refusal) body = {.status = refusal->status};
  return body;
}

size_t Scan(std::string_view bytes, size_t step, bool* refused) {
  const RequestHeadLimits limits{.bytes = 4096, .count = 20};
  HeadScanner scanner;
  std::optional<HttpRefusal> refusal;
  size_t length = 0;
  for (size_t end = 0; end < bytes.size() && length == 0 && !refusal;) {
    end = std::min(end + step, bytes.size());
    length = scanner.Scan(bytes.substr(0, end), limits, &refusal);
  }
  *refused = refusal.has_value();
  return length;
}

void CheckRequest(const HttpServerRequest& request, const RequestFraming& framing) {
  if (!shoal::net::IsHttpToken(request.method) || request.target.empty()) std::abort();
  for (const std::string& segment : request.path) {
    if (segment == "." || segment == ".." || !shoal::IsUtf8(segment)) std::abort();
    for (const char c : segment)
      if (static_cast<unsigned char>(c) < 0x20 || c == '/' || c == 0x7f) std::abort();
  }
  for (const auto& [name, value] : request.query)
    if (!shoal::IsUtf8(name) || !shoal::IsUtf8(value)) std::abort();
  for (const auto& [name, value] : request.headers) {
    if (!shoal::net::IsHttpToken(name)) std::abort();
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) std::abort();
  }
  if (framing.http11 && request.host.empty()) std::abort();
  if (framing.chunked && framing.content_length != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  bool refused = false;
  bool refused_in_pieces = false;
  const size_t length = Scan(bytes, std::max<size_t>(size, 1), &refused);
  if (length != Scan(bytes, 1, &refused_in_pieces) || refused != refused_in_pieces) std::abort();
  if (length > 0) {
    HttpServerRequest request;
    RequestFraming framing;
    const auto refusal = shoal::net::ParseRequestHead(
        bytes.substr(0, length), {.bytes = 4096, .count = 20}, &request, &framing);
    if (!refusal) CheckRequest(request, framing);
  }
  const std::string_view rest = bytes.substr(length);
  const Body whole = Decode(rest, std::max<size_t>(rest.size(), 1));
  if (whole != Decode(rest, 1) || whole != Decode(rest, 7)) std::abort();
  return 0;
}
