#include "api/rest/router.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>

#include "base/utf8.h"

namespace shoal::api {
namespace {

using net::HttpServerReply;
using net::HttpServerRequest;

constexpr size_t kMaxSegment = 128;

bool IsParameter(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

// True if the segments are those of the route's path; its parameters go to `values`.
bool MatchPath(std::string_view pattern, std::span<const std::string> segments,
               json::object* values) {
  size_t at = 1;
  for (const std::string& segment : segments) {
    if (at > pattern.size()) return false;
    const size_t end = std::min(pattern.find('/', at), pattern.size());
    const std::string_view part = pattern.substr(at, end - at);
    at = end + 1;
    if (!IsParameter(part)) {
      if (part != segment) return false;
      continue;
    }
    if (segment.empty() || segment.size() > kMaxSegment) return false;
    (*values)[part.substr(1, part.size() - 2)] = segment;
  }
  return at > pattern.size();
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 60;
  return "\"" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "…" : "") + "\"";
}

std::string Range(const Parameter& parameter) {
  return "expected an integer from " + std::to_string(parameter.least) + " to " +
         std::to_string(parameter.most);
}

// What is wrong with the text; empty if nothing is.
std::string WrongText(const Parameter& parameter, std::string_view text) {
  const auto size = static_cast<int64_t>(text.size());
  if (size > parameter.most)
    return "got " + std::to_string(size) + " bytes, expected at most " +
           std::to_string(parameter.most);
  if (size < parameter.least) return "got an empty text";
  if (parameter.choices.empty()) return "";
  std::string_view rest = parameter.choices;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, end) == text) return "";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::string choices(parameter.choices);
  std::ranges::replace(choices, '|', ',');
  return "got " + Quoted(text) + ", expected one of " + choices;
}

// The value of a query parameter; `wrong` gets the reason if there is none.
json::value ReadQuery(const Parameter& parameter, std::string_view text, std::string* wrong) {
  if (parameter.kind == Kind::kInteger) {
    int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const bool good = error == std::errc() && rest == end && !text.empty() &&
                      number >= parameter.least && number <= parameter.most;
    if (!good) *wrong = "got " + Quoted(text) + ", " + Range(parameter);
    return number;
  }
  if (parameter.kind == Kind::kBoolean) {
    const bool yes = text == "true" || text == "1" || text.empty();
    if (!yes && text != "false" && text != "0")
      *wrong = "got " + Quoted(text) + ", expected true or false";
    return yes;
  }
  if (parameter.kind == Kind::kTime) {
    const std::optional<int64_t> time = ParseTime(text);
    if (!time) *wrong = "got " + Quoted(text) + ", expected a time like 2026-11-21T05:04:21Z";
    return time.value_or(0);
  }
  *wrong = WrongText(parameter, text);
  return json::value(text);
}

std::string WrongObjects(const Parameter& parameter, const json::value& value) {
  if (!value.is_array()) return "expected a list of objects";
  const json::array& items = value.get_array();
  if (std::cmp_greater(items.size(), parameter.most))
    return "expected at most " + std::to_string(parameter.most) + " objects";
  const bool objects =
      std::ranges::all_of(items, [](const json::value& item) { return item.is_object(); });
  return objects ? "" : "expected a list of objects";
}

std::string WrongList(const Parameter& parameter, const json::value& value) {
  if (!value.is_array()) return "expected a list of texts";
  const json::array& list = value.get_array();
  if (static_cast<int64_t>(list.size()) > parameter.most)
    return "got " + std::to_string(list.size()) + " elements, expected at most " +
           std::to_string(parameter.most);
  const bool texts =
      std::ranges::all_of(list, [](const json::value& one) { return one.is_string(); });
  return texts ? "" : "expected a list of texts";
}

// What is wrong with the value of a body's field; empty if nothing is.
std::string WrongValue(const Parameter& parameter, const json::value& value) {
  switch (parameter.kind) {
    case Kind::kText:
    case Kind::kTime:
      if (!value.is_string()) return "expected a text";
      return WrongText(parameter, value.get_string());
    case Kind::kInteger: {
      if (!value.is_int64() || value.get_int64() < parameter.least ||
          value.get_int64() > parameter.most)
        return Range(parameter);
      return "";
    }
    case Kind::kBoolean:
      return value.is_bool() ? "" : "expected true or false";
    case Kind::kObject:
      return value.is_object() ? "" : "expected an object";
    case Kind::kTexts:
      return WrongList(parameter, value);
    case Kind::kObjects:
      return WrongObjects(parameter, value);
  }
  return "";
}

const Parameter* Find(const std::vector<Parameter>& among, std::string_view name) {
  const auto found = std::ranges::find(among, name, &Parameter::name);
  return found == among.end() ? nullptr : &*found;
}

std::string NamesOf(const std::vector<Parameter>& among) {
  std::string names;
  for (const Parameter& one : among) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names.empty() ? "none" : names;
}

std::optional<HttpServerReply> CheckQuery(const Route& route, const HttpServerRequest& request,
                                          json::object* values) {
  constexpr int kBad = 400;
  for (const auto& [name, text] : request.query) {
    const Parameter* const parameter = Find(route.query, name);
    if (parameter == nullptr)
      return Problem(
          kBad, "query parameter " + Quoted(name) + ": this request knows " + NamesOf(route.query));
    if (values->contains(name)) return Problem(kBad, "query parameter " + name + ": got it twice");
    std::string wrong;
    json::value value = ReadQuery(*parameter, text, &wrong);
    if (!wrong.empty()) return Problem(kBad, "query parameter " + name + ": " + wrong);
    (*values)[name] = std::move(value);
  }
  for (const Parameter& parameter : route.query) {
    if (parameter.required && !values->contains(parameter.name))
      return Problem(kBad, "query parameter " + std::string(parameter.name) + ": missing");
  }
  return std::nullopt;
}

bool IsJson(const HttpServerRequest& request) {
  const std::string_view type = request.Header("content-type");
  return type.substr(0, type.find(';')) == "application/json";
}

std::optional<HttpServerReply> CheckBody(const Route& route, const HttpServerRequest& request,
                                         json::object* values) {
  constexpr int kWrongType = 415;
  if (route.body != Body::kJson || (request.body.empty() && route.fields.empty()))
    return std::nullopt;
  if (!request.body.empty() && !IsJson(request))
    return Problem(kWrongType, "got a body of type " + Quoted(request.Header("content-type")) +
                                   ", expected application/json");
  Result<json::object> body =
      request.body.empty() ? Result<json::object>(json::object()) : ParseJsonObject(request.body);
  if (!body.ok()) return Problem({FieldError{"", "the body: " + body.status().message()}});
  std::vector<FieldError> errors;
  for (const auto& field : *body) {
    const Parameter* const parameter = Find(route.fields, field.key());
    const std::string wrong = parameter == nullptr
                                  ? "there is no such field, expected " + NamesOf(route.fields)
                                  : WrongValue(*parameter, field.value());
    if (!wrong.empty()) errors.push_back({std::string(field.key().substr(0, kMaxSegment)), wrong});
  }
  for (const Parameter& parameter : route.fields) {
    if (parameter.required && !body->contains(parameter.name))
      errors.push_back({std::string(parameter.name), "missing"});
  }
  if (!errors.empty()) return Problem(errors);
  *values = std::move(*body);
  return std::nullopt;
}

const json::value* FindIn(const Arguments& arguments, std::string_view name) {
  const json::value* const value = arguments.query.if_contains(name);
  return value != nullptr ? value : arguments.body.if_contains(name);
}

// The number in text[at, at + digits), or -1.
int Digits(std::string_view text, size_t at, size_t digits) {
  int number = 0;
  if (at + digits > text.size()) return -1;
  const char* const end = text.data() + at + digits;
  const auto [rest, error] = std::from_chars(text.data() + at, end, number);
  return error == std::errc() && rest == end && number >= 0 ? number : -1;
}

}  // namespace

std::string Arguments::Text(std::string_view name) const {
  const json::value* const value = FindIn(*this, name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

int64_t Arguments::Integer(std::string_view name, int64_t other) const {
  const json::value* const value = FindIn(*this, name);
  return value != nullptr && value->is_int64() ? value->get_int64() : other;
}

bool Arguments::Boolean(std::string_view name, bool other) const {
  const json::value* const value = FindIn(*this, name);
  return value != nullptr && value->is_bool() ? value->get_bool() : other;
}

bool Arguments::Has(std::string_view name) const { return FindIn(*this, name) != nullptr; }

std::vector<std::string> Arguments::Texts(std::string_view name) const {
  std::vector<std::string> texts;
  const json::value* const value = FindIn(*this, name);
  if (value == nullptr || !value->is_array()) return texts;
  for (const json::value& one : value->get_array())
    if (one.is_string()) texts.emplace_back(one.get_string());
  return texts;
}

std::optional<int64_t> ParseTime(std::string_view text) {
  constexpr size_t kSeconds = 19;  // "2026-11-21T05:04:21"
  constexpr size_t kLongest = 30;
  if (text.size() <= kSeconds || text.size() > kLongest || text.back() != 'Z') return std::nullopt;
  const bool marks =
      text[4] == '-' && text[7] == '-' && text[10] == 'T' && text[13] == ':' && text[16] == ':';
  const int year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  const int hour = Digits(text, 11, 2), minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!marks || !date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60)
    return std::nullopt;
  int64_t micros = 0;
  std::string_view fraction = text.substr(kSeconds, text.size() - kSeconds - 1);
  if (!fraction.empty()) {
    if (fraction.front() != '.' || fraction.size() < 2) return std::nullopt;
    int64_t unit = 100'000;
    for (const char c : fraction.substr(1)) {
      if (c < '0' || c > '9') return std::nullopt;
      micros += (c - '0') * unit;
      unit /= 10;
    }
  }
  const auto whole = std::chrono::sys_days(date) + std::chrono::hours(hour) +
                     std::chrono::minutes(minute) + std::chrono::seconds(second);
  return std::chrono::duration_cast<std::chrono::microseconds>(whole.time_since_epoch()).count() +
         micros;
}

static bool IsTemplate(const Route& route) {
  return route.path.find('{') != std::string_view::npos;
}

std::variant<Match, HttpServerReply> FindMatch(const HttpServerRequest& request) {
  constexpr int kNotFound = 404;
  constexpr int kWrongMethod = 405;
  std::string allowed;
  // As OpenAPI has it, /files/missing is not what /files/{sha256} stands for.
  const bool concrete = std::ranges::any_of(Routes(), [&request](const Route& route) {
    json::object none;
    return !IsTemplate(route) && MatchPath(route.path, request.path, &none);
  });
  for (const Route& route : Routes()) {
    Match match{&route, {}};
    if (concrete && IsTemplate(route)) continue;
    if (!MatchPath(route.path, request.path, &match.path)) continue;
    const std::string_view method = NameOf(route.method);
    if (method == request.method || (request.method == "HEAD" && route.method == Method::kGet))
      return match;
    allowed += (allowed.empty() ? "" : ", ") + std::string(method);
  }
  if (!allowed.empty()) {
    HttpServerReply reply = Problem(
        kWrongMethod, "this address does not take " + Quoted(request.method) + ", but " + allowed);
    reply.headers.emplace_back("Allow", allowed);
    return reply;
  }
  const bool version = request.path.size() > 1 && request.path[0] == "api" &&
                       request.path[1] != kApiPrefix.substr(std::string_view("/api/").size());
  return Problem(kNotFound,
                 version ? "there is no version " + Quoted(request.path[1]) +
                               " of the API here; this server has v1"
                         : "there is nothing at this address; GET /api/v1/openapi.json lists the "
                           "requests");
}

Status CheckValues(const Route& route, const json::object& fields) {
  for (const auto& field : fields) {
    const Parameter* const parameter = Find(route.query, field.key());
    const std::string wrong = parameter == nullptr
                                  ? "there is no such field, expected " + NamesOf(route.query)
                                  : WrongValue(*parameter, field.value());
    if (!wrong.empty())
      return InvalidArgument(std::string(field.key().substr(0, kMaxSegment)) + ": " + wrong);
  }
  return Status::Ok();
}

std::variant<Arguments, HttpServerReply> CheckRequest(const Match& match,
                                                      const HttpServerRequest& request) {
  Arguments arguments;
  arguments.path = match.path;
  if (auto reply = CheckQuery(*match.route, request, &arguments.query)) return *reply;
  if (auto reply = CheckBody(*match.route, request, &arguments.body)) return *reply;
  return arguments;
}

}  // namespace shoal::api
