#include "net/http/request_head.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/utf8.h"

namespace shoal::net {
namespace {

constexpr size_t kMaxTarget = 8 << 10;
constexpr size_t kMaxMethod = 32;

HttpRefusal Bad(std::string detail) { return {400, std::move(detail)}; }

bool IsTokenByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view Trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Calls `fn` with each member of a comma-separated list, in lower case; false once it says so.
template <typename Fn>
bool ForEachMember(std::string_view list, Fn fn) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view member = Trim(list.substr(0, comma));
    if (!member.empty() && !fn(Lower(member))) return false;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return true;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// False for an escape that is none.
bool PercentDecode(std::string_view text, bool plus_is_blank, std::string* out) {
  out->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return false;
      const int high = HexValue(text[i + 1]);
      const int low = HexValue(text[i + 2]);
      if (high < 0 || low < 0) return false;
      out->push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out->push_back(plus_is_blank && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return true;
}

std::optional<HttpRefusal> DecodeSegment(std::string_view text, std::string* segment) {
  if (!PercentDecode(text, false, segment))
    return Bad("the path has a '%' without two hexadecimal digits");
  if (segment->find('/') != std::string::npos)
    return Bad("the path has an encoded '/' in a segment");
  if (*segment == "." || *segment == "..")
    return Bad("the path has a segment '" + *segment + "', expected a path without them");
  if (std::any_of(segment->begin(), segment->end(), IsControl))
    return Bad("the path has an encoded control character");
  if (!IsUtf8(*segment)) return Bad("the path is not UTF-8");
  return std::nullopt;
}

std::optional<HttpRefusal> DecodeQuery(std::string_view text, HttpServerRequest* request) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    std::string name;
    std::string value;
    if (!PercentDecode(pair.substr(0, equals), true, &name) ||
        !PercentDecode(pair.substr(std::min(equals + 1, pair.size())), true, &value))
      return Bad("the query has a '%' without two hexadecimal digits");
    for (const std::string* one : {&name, &value}) {
      if (one->find('\0') != std::string::npos) return Bad("the query has an encoded NUL");
      if (!IsUtf8(*one)) return Bad("the query is not UTF-8");
    }
    request->query.emplace_back(std::move(name), std::move(value));
  }
  return std::nullopt;
}

// "HOST", "HOST:PORT", "[V6]:PORT" with what a host may have; not resolved.
bool IsAuthority(std::string_view text) {
  if (text.empty() || text.size() > 300) return false;
  std::string_view host = text;
  std::string_view port;
  const size_t bracket = text.find(']');
  const size_t colon =
      text.front() == '[' && bracket != std::string_view::npos ? bracket + 1 : text.find(':');
  if (colon < text.size()) {
    if (text[colon] != ':') return false;
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (!std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
      port.size() > 5)
    return false;
  const bool v6 = host.front() == '[';
  if (v6) host = host.substr(1, host.size() - 2);
  const std::string_view others = v6 ? ":." : "-._~!$&'()*+,;=%";
  return !host.empty() && std::all_of(host.begin(), host.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = v6 ? std::isxdigit(byte) != 0 : std::isalnum(byte) != 0;
    return plain || others.find(c) != std::string_view::npos;
  });
}

struct RequestLine {
  std::string_view method;
  std::string_view target;
  bool http11 = true;
};

std::optional<HttpRefusal> SplitRequestLine(std::string_view line, RequestLine* out) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return Bad("the request line is not METHOD TARGET HTTP/1.1");
  out->method = line.substr(0, first);
  out->target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!IsHttpToken(out->method)) return Bad("the method is no token");
  if (out->method.size() > kMaxMethod)
    return HttpRefusal{501, "the method is longer than 32 bytes"};
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (version.size() != 8 || !version.starts_with("HTTP/") || !digit(version[5]) ||
      version[6] != '.' || !digit(version[7]))
    return Bad("the request line does not end with HTTP/1.1");
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return HttpRefusal{505, "got " + std::string(version) + ", expected HTTP/1.1"};
  out->http11 = version == "HTTP/1.1";
  if (out->target.empty()) return Bad("the request line has no target");
  if (out->target.size() > kMaxTarget)
    return HttpRefusal{414, "the target is longer than 8192 bytes"};
  return std::nullopt;
}

// Takes scheme and authority off a target in absolute form; `authority` is empty otherwise.
std::optional<HttpRefusal> ToOriginForm(const RequestLine& line, std::string* target,
                                        std::string_view* authority) {
  std::string_view text = line.target;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f)
      return Bad("the target has a byte that must be percent-encoded");
    if (c == '#') return Bad("the target has a fragment ('#')");
  }
  if (line.method == "CONNECT") return HttpRefusal{405, "CONNECT is for proxies, and this is none"};
  const std::string scheme = Lower(text.substr(0, 8));
  for (const std::string_view prefix : {"http://", "https://"}) {
    if (!scheme.starts_with(prefix)) continue;
    text.remove_prefix(prefix.size());
    const size_t end = std::min(text.find_first_of("/?"), text.size());
    *authority = text.substr(0, end);
    if (!IsAuthority(*authority)) return Bad("the target's host is none");
    text.remove_prefix(end);
    *target = text.starts_with('/') ? std::string(text) : "/" + std::string(text);
    return std::nullopt;
  }
  if (text == "*" && line.method == "OPTIONS") {
    *target = "*";
    return std::nullopt;
  }
  if (text.front() != '/') return Bad("the target does not begin with '/'");
  *target = text;
  return std::nullopt;
}

std::optional<HttpRefusal> SplitHeader(std::string_view line, HttpHeaders* headers) {
  if (line.front() == ' ' || line.front() == '\t')
    return Bad("a header goes on in a second line, which is not allowed any more");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return Bad("a header line has no ':'");
  const std::string_view name = line.substr(0, colon);
  if (!IsHttpToken(name)) return Bad("a header's name is no token directly before its ':'");
  headers->emplace_back(Lower(name), std::string(Trim(line.substr(colon + 1))));
  return std::nullopt;
}

// Headers that say one thing: a second one is read by some and overlooked by others.
constexpr std::array<std::string_view, 9> kOnce = {
    "host",   "content-length", "transfer-encoding", "authorization",    "content-type",
    "origin", "expect",         "idempotency-key",   "sec-websocket-key"};

std::optional<HttpRefusal> CheckOnce(const HttpHeaders& headers) {
  std::array<bool, kOnce.size()> seen{};
  for (const auto& [name, value] : headers) {
    const auto found = std::find(kOnce.begin(), kOnce.end(), name);
    if (found == kOnce.end()) continue;
    bool& one = seen[static_cast<size_t>(found - kOnce.begin())];
    if (one) return Bad("the header " + name + " is there twice");
    one = true;
  }
  return std::nullopt;
}

bool HasHeader(const HttpServerRequest& request, std::string_view name) {
  return std::any_of(request.headers.begin(), request.headers.end(),
                     [&](const auto& header) { return header.first == name; });
}

std::optional<HttpRefusal> ReadContentLength(std::string_view text, uint64_t* length) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return Bad("Content-Length is no decimal number");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *length);
  if (error != std::errc() || *length > INT64_MAX)
    return HttpRefusal{413, "Content-Length is too large"};
  return std::nullopt;
}

std::optional<HttpRefusal> ReadFraming(const HttpServerRequest& request, RequestFraming* framing) {
  const bool has_length = HasHeader(request, "content-length");
  const bool has_encoding = HasHeader(request, "transfer-encoding");
  if (has_length && has_encoding)
    return Bad("Content-Length and Transfer-Encoding exclude each other");
  if (has_length) {
    if (auto refusal =
            ReadContentLength(request.Header("content-length"), &framing->content_length))
      return refusal;
  }
  if (has_encoding) {
    if (!framing->http11) return Bad("HTTP/1.0 has no Transfer-Encoding");
    if (Lower(request.Header("transfer-encoding")) != "chunked")
      return HttpRefusal{501, "Transfer-Encoding: expected chunked alone"};
    framing->chunked = true;
  }
  framing->keep_alive = framing->http11;
  for (const auto& [name, value] : request.headers) {
    if (name != "connection") continue;
    ForEachMember(value, [&](const std::string& member) {
      if (member == "close") framing->keep_alive = false;
      return true;
    });
  }
  const std::string_view expect = request.Header("expect");
  if (!expect.empty() && framing->http11) {
    if (Lower(expect) != "100-continue")
      return HttpRefusal{417, "Expect: only 100-continue is understood"};
    framing->expect_continue = framing->has_body();
  }
  return std::nullopt;
}

bool ListHas(const HttpServerRequest& request, std::string_view header, std::string_view member) {
  for (const auto& [name, value] : request.headers) {
    if (name == header &&
        !ForEachMember(value, [&](const std::string& one) { return one != member; }))
      return true;
  }
  return false;
}

std::optional<HttpRefusal> ReadUpgrade(const RequestFraming& framing, HttpServerRequest* request) {
  if (!framing.http11 || request->method != "GET" || framing.has_body() ||
      !ListHas(*request, "connection", "upgrade") || !ListHas(*request, "upgrade", "websocket"))
    return std::nullopt;
  if (request->Header("sec-websocket-version") != "13")
    return HttpRefusal{426, "Sec-WebSocket-Version: expected 13"};
  const std::string_view key = request->Header("sec-websocket-key");
  if (key.size() != 24 || !key.ends_with("=="))
    return Bad("Sec-WebSocket-Key: expected 16 bytes in base64");
  request->websocket = true;
  return std::nullopt;
}

// The parts of an authority, with the scheme's port for a missing one.
std::pair<std::string, std::string> HostAndPort(std::string_view authority, bool tls) {
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos &&
                        (bracket == std::string_view::npos || colon > bracket) &&
                        colon + 1 < authority.size();
  return {Lower(authority.substr(0, has_port ? colon : authority.size())),
          has_port ? std::string(authority.substr(colon + 1))
          : tls    ? "443"
                   : "80"};
}

}  // namespace

bool IsHttpToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenByte);
}

bool IsSameOrigin(std::string_view origin, std::string_view host) {
  const bool tls = origin.starts_with("https://");
  if (!tls && !origin.starts_with("http://")) return false;
  return HostAndPort(origin.substr(tls ? 8 : 7), tls) == HostAndPort(host, tls);
}

size_t HeadScanner::Scan(std::string_view bytes, const RequestHeadLimits& limits,
                         std::optional<HttpRefusal>* refusal) {
  const size_t end = std::min(bytes.size(), limits.bytes);
  for (; seen_ < end; ++seen_) {
    const char c = bytes[seen_];
    if (!IsControl(c) || c == '\t') continue;
    const bool after_return = seen_ > 0 && bytes[seen_ - 1] == '\r';
    if (c == '\r' && seen_ + 1 == bytes.size()) break;  // its line feed may follow
    if (c == '\r' && bytes[seen_ + 1] == '\n') continue;
    if (c != '\n' || !after_return) {
      *refusal = Bad(c == '\n' || c == '\r' ? "a line does not end with CR LF"
                                            : "the head has a control character");
      return 0;
    }
    const bool empty = seen_ - line_begin_ == 1;
    const bool first = line_begin_ == 0;
    line_begin_ = seen_ + 1;
    // One empty line before the request is passed over, as RFC 9112 §2.2 wishes.
    if (empty && !first) return ++seen_;
  }
  if (seen_ >= limits.bytes)
    *refusal = HttpRefusal{line_begin_ == 0 ? 414 : 431,
                           "the head is longer than " + std::to_string(limits.bytes) + " bytes"};
  return 0;
}

std::optional<HttpRefusal> ParseRequestTarget(std::string_view target, HttpServerRequest* request) {
  const size_t question = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(0, question);
  if (path.starts_with('/')) path.remove_prefix(1);
  while (!path.empty()) {
    const size_t slash = path.find('/');
    std::string segment;
    if (auto refusal = DecodeSegment(path.substr(0, slash), &segment)) return refusal;
    request->path.push_back(std::move(segment));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
    if (path.empty()) request->path.emplace_back();
  }
  return DecodeQuery(target.substr(std::min(question + 1, target.size())), request);
}

std::optional<HttpRefusal> ParseRequestHead(std::string_view head, const RequestHeadLimits& limits,
                                            HttpServerRequest* request, RequestFraming* framing) {
  if (head.starts_with("\r\n")) head.remove_prefix(2);
  const auto take_line = [&head] {
    const size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    return line;
  };
  RequestLine line;
  if (auto refusal = SplitRequestLine(take_line(), &line)) return refusal;
  framing->http11 = line.http11;
  request->method = line.method;
  std::string_view authority;
  if (auto refusal = ToOriginForm(line, &request->target, &authority)) return refusal;
  for (std::string_view text = take_line(); !text.empty(); text = take_line()) {
    if (request->headers.size() == limits.count)
      return HttpRefusal{431, "there are more than " + std::to_string(limits.count) + " headers"};
    if (auto refusal = SplitHeader(text, &request->headers)) return refusal;
  }
  if (auto refusal = CheckOnce(request->headers)) return refusal;
  const bool has_host = HasHeader(*request, "host");
  if (line.http11 && !has_host) return Bad("the header Host is missing");
  if (has_host && !IsAuthority(request->Header("host"))) return Bad("Host is no HOST:PORT");
  request->host = authority.empty() ? request->Header("host") : authority;
  if (auto refusal = ReadFraming(*request, framing)) return refusal;
  if (auto refusal = ReadUpgrade(*framing, request)) return refusal;
  if (request->target == "*") return std::nullopt;
  return ParseRequestTarget(request->target, request);
}

std::string_view HttpServerRequest::Header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return {};
}

std::optional<std::string_view> HttpServerRequest::Query(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace shoal::net
