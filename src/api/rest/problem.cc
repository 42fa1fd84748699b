#include "api/rest/problem.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"

namespace shoal::api {
namespace {

constexpr size_t kMaxDetail = 8192;
constexpr int kBadRequest = 400;
constexpr int kUnavailable = 503;
constexpr const char* kProblemType = "application/problem+json";

struct CodePair {
  Code code;
  int status;
};

// The first status of a code is the one that is sent, the first code of a status the one that is
// read.
constexpr std::array<CodePair, 18> kPairs = {{
    {Code::kOk, 200},
    {Code::kInvalidArgument, 422},
    {Code::kInvalidArgument, 400},
    {Code::kUnauthenticated, 401},
    {Code::kPermissionDenied, 403},
    {Code::kNotFound, 404},
    {Code::kFailedPrecondition, 409},
    {Code::kAlreadyExists, 409},
    {Code::kAborted, 412},
    {Code::kResourceExhausted, 413},
    {Code::kOutOfRange, 416},
    {Code::kUnavailable, 503},
    {Code::kUnavailable, 502},
    {Code::kResourceExhausted, 429},
    {Code::kResourceExhausted, 507},
    {Code::kDeadlineExceeded, 504},
    {Code::kUnimplemented, 501},
    {Code::kInternal, 500},
}};

std::string_view TitleOf(int status) {
  switch (status) {
    case 400:
      return "Bad request";
    case 401:
      return "Not signed in";
    case 403:
      return "Not allowed";
    case 404:
      return "Not found";
    case 405:
      return "Method not allowed";
    case 406:
      return "Not acceptable";
    case 409:
      return "Conflict";
    case 412:
      return "Changed meanwhile";
    case 413:
      return "Too large";
    case 415:
      return "Unsupported media type";
    case 416:
      return "Out of range";
    case 422:
      return "Invalid request";
    case 429:
      return "Too many requests";
    case 501:
      return "Not implemented";
    case 503:
      return "Unavailable";
    case 504:
      return "Timed out";
    case 507:
      return "No room";
    default:
      return "Error";
  }
}

json::object Document(int status, std::string_view detail) {
  std::string text = ValidUtf8(std::string(detail.substr(0, kMaxDetail)));
  return {{"type", "about:blank"},
          {"title", TitleOf(status)},
          {"status", status},
          {"detail", std::move(text)}};
}

net::HttpServerReply Made(int status, const json::object& document) {
  net::HttpServerReply reply;
  reply.status = status;
  reply.headers = {{"Content-Type", kProblemType}, {"Cache-Control", "no-store"}};
  if (status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"shoal\"");
  reply.body = ToText(document) + "\n";
  return reply;
}

// The number at the beginning of `text` up to ':', both removed.
std::optional<int> TakeNumber(std::string_view* text) {
  const size_t colon = text->find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  int number = 0;
  const char* const end = text->data() + colon;
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  text->remove_prefix(colon + 1);
  return number;
}

}  // namespace

int HttpStatusOf(Code code) {
  for (const CodePair& pair : kPairs) {
    if (pair.code == code) return pair.status;
  }
  return 500;
}

Code CodeOfHttpStatus(int status) {
  for (const CodePair& pair : kPairs) {
    if (pair.status == status) return pair.code;
  }
  return Code::kUnknown;
}

net::HttpServerReply Problem(int status, std::string_view detail) {
  return Made(status, Document(status, detail));
}

net::HttpServerReply Problem(const Status& status) {
  return Problem(HttpStatusOf(status.code()), status.message());
}

net::HttpServerReply Problem(const std::vector<FieldError>& errors) {
  constexpr int kInvalid = 422;
  std::string detail;
  json::array list;
  for (const FieldError& error : errors) {
    const std::string place = error.field.empty() ? "" : error.field + ": ";
    detail += (detail.empty() ? "" : "\n") + place + error.message;
    json::object one{{"field", error.field}, {"message", ValidUtf8(error.message)}};
    if (error.line > 0) one["line"] = error.line;
    if (error.column > 0) one["column"] = error.column;
    list.push_back(std::move(one));
  }
  json::object document = Document(kInvalid, detail);
  document["errors"] = std::move(list);
  return Made(kInvalid, document);
}

net::HttpServerReply QueryProblem(const Status& status) {
  if (status.code() == Code::kInvalidArgument) return Problem(kBadRequest, status.message());
  return Problem(status);
}

net::HttpServerReply NotLeadingReply(const std::string& leader) {
  net::HttpServerReply reply =
      Problem(kUnavailable,
              leader.empty() ? "this server is a standby, and no server leads yet; try again"
                             : "this server is a standby; " + leader + " leads, so use that one");
  reply.headers.emplace_back("Retry-After", "1");
  if (!leader.empty()) reply.headers.emplace_back(kLeaderHeader, leader);
  return reply;
}

std::vector<FieldError> ParseJobFileErrors(const std::string& message, std::string_view file) {
  std::vector<FieldError> errors;
  std::string_view rest = message;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    FieldError error;
    std::string_view at = line;
    if (at.starts_with(file) && at.size() > file.size() && at[file.size()] == ':') {
      at.remove_prefix(file.size() + 1);
      const std::optional<int> row = TakeNumber(&at);
      const std::optional<int> column = row ? TakeNumber(&at) : std::nullopt;
      if (column) {
        error.line = *row;
        error.column = *column;
        line = at.starts_with(' ') ? at.substr(1) : at;
      }
    }
    const size_t colon = line.find(": ");
    const bool path = colon != std::string_view::npos &&
                      line.substr(0, colon).find_first_of(" \"'") == std::string_view::npos;
    if (path) error.field = line.substr(0, colon);
    error.message = path ? line.substr(colon + 2) : line;
    errors.push_back(std::move(error));
  }
  return errors;
}

Status StatusOfReply(int status, std::string_view body, const std::string& server) {
  const Result<json::object> document = ParseJsonObject(body);
  std::string detail = document.ok() ? GetStringOr(*document, "detail", "") : "";
  if (detail.empty())
    detail = "the server " + server + " answered with status " + std::to_string(status);
  return {CodeOfHttpStatus(status), std::move(detail)};
}

}  // namespace shoal::api
