#include "net/http/server_reply.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "net/http/request_head.h"

namespace shoal::net {
namespace {

constexpr std::array kReasons = {
    std::pair{200, "OK"},
    std::pair{201, "Created"},
    std::pair{202, "Accepted"},
    std::pair{204, "No Content"},
    std::pair{206, "Partial Content"},
    std::pair{301, "Moved Permanently"},
    std::pair{302, "Found"},
    std::pair{303, "See Other"},
    std::pair{304, "Not Modified"},
    std::pair{307, "Temporary Redirect"},
    std::pair{308, "Permanent Redirect"},
    std::pair{400, "Bad Request"},
    std::pair{401, "Unauthorized"},
    std::pair{403, "Forbidden"},
    std::pair{404, "Not Found"},
    std::pair{405, "Method Not Allowed"},
    std::pair{406, "Not Acceptable"},
    std::pair{408, "Request Timeout"},
    std::pair{409, "Conflict"},
    std::pair{410, "Gone"},
    std::pair{411, "Length Required"},
    std::pair{412, "Precondition Failed"},
    std::pair{413, "Content Too Large"},
    std::pair{414, "URI Too Long"},
    std::pair{415, "Unsupported Media Type"},
    std::pair{416, "Range Not Satisfiable"},
    std::pair{417, "Expectation Failed"},
    std::pair{422, "Unprocessable Content"},
    std::pair{423, "Locked"},
    std::pair{425, "Too Early"},
    std::pair{426, "Upgrade Required"},
    std::pair{428, "Precondition Required"},
    std::pair{429, "Too Many Requests"},
    std::pair{431, "Request Header Fields Too Large"},
    std::pair{500, "Internal Server Error"},
    std::pair{501, "Not Implemented"},
    std::pair{502, "Bad Gateway"},
    std::pair{503, "Service Unavailable"},
    std::pair{504, "Gateway Timeout"},
    std::pair{505, "HTTP Version Not Supported"},
    std::pair{507, "Insufficient Storage"},
};

bool Is(std::string_view name, std::string_view other) {
  return name.size() == other.size() && ::strncasecmp(name.data(), other.data(), name.size()) == 0;
}

// Headers that the server sets itself.
bool IsOurs(std::string_view name) {
  return Is(name, "content-length") || Is(name, "transfer-encoding") || Is(name, "connection") ||
         Is(name, "date");
}

bool IsValue(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

// "Wed, 25 Nov 2026 07:01:46 GMT"; made once a second for each thread.
std::string_view DateText(WallTime now) {
  thread_local std::time_t last = -1;
  thread_local std::string text;
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  if (seconds == last) return text;
  last = seconds;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  text = fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays[static_cast<size_t>(parts.tm_wday)], parts.tm_mday,
                     kMonths[static_cast<size_t>(parts.tm_mon)], parts.tm_year + 1900,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text;
}

}  // namespace

std::string_view ReasonPhrase(int status) {
  const auto found = std::find_if(kReasons.begin(), kReasons.end(),
                                  [&](const auto& one) { return one.first == status; });
  return found == kReasons.end() ? "Status" : found->second;
}

bool IsBodiless(int status) { return status < 200 || status == 204 || status == 304; }

std::optional<uint64_t> GivenContentLength(const HttpHeaders& headers) {
  for (const auto& [name, value] : headers) {
    if (!Is(name, "content-length")) continue;
    uint64_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error == std::errc() && end == value.data() + value.size()) return length;
  }
  return std::nullopt;
}

bool AppendReplyHead(const ReplyHead& head, std::string* out) {
  if (head.status < 200 || head.status > 599) return false;
  for (const auto& [name, value] : *head.headers)
    if (!IsHttpToken(name) || !IsValue(value)) return false;
  fmt::format_to(std::back_inserter(*out), "HTTP/1.1 {} {}\r\nDate: {}\r\n", head.status,
                 ReasonPhrase(head.status), DateText(head.now));
  for (const auto& [name, value] : *head.headers) {
    if (!IsOurs(name)) fmt::format_to(std::back_inserter(*out), "{}: {}\r\n", name, value);
  }
  // A reply of 304 may tell the length that 200 would have; this one does not.
  if (IsBodiless(head.status)) {
  } else if (head.framing == ReplyFraming::kLength) {
    fmt::format_to(std::back_inserter(*out), "Content-Length: {}\r\n", head.content_length);
  } else if (head.framing == ReplyFraming::kChunked) {
    *out += "Transfer-Encoding: chunked\r\n";
  }
  if (!head.keep_alive) *out += "Connection: close\r\n";
  *out += "\r\n";
  return true;
}

HttpServerReply ProblemReply(int status, std::string_view detail) {
  json::object problem;
  problem["type"] = "about:blank";
  problem["title"] = ReasonPhrase(status);
  problem["status"] = status;
  problem["detail"] = ValidUtf8(detail);
  HttpServerReply reply;
  reply.status = status;
  reply.headers.emplace_back("Content-Type", "application/problem+json");
  reply.body = ToText(problem) + "\n";
  return reply;
}

}  // namespace shoal::net
