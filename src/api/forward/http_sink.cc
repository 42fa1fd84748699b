// The sinks over HTTP. Both APIs are those of their documentation: OpenSearch "Bulk" (2.x, 3.x),
// Loki "Ingest logs" (2.9, 3.x).

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/forward/log_sink.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/json.h"
#include "net/http/http_session.h"

namespace shoal::api {
namespace {

constexpr std::chrono::milliseconds kSendTime{30'000};
constexpr size_t kMaxAnswer = size_t{16} << 20;
constexpr size_t kMaxFile = size_t{1} << 20;
constexpr int64_t kMostRetryAfter = 300;
constexpr size_t kMaxSaid = 300;

constexpr int kConflict = 409;
constexpr int kTooMany = 429;

bool IsTransient(int status) {
  return status == kTooMany || status == 408 || status == 401 || status == 403 || status == 404 ||
         status >= 500 || status < 200 || (status >= 300 && status < 400);
}

std::vector<size_t> AllOf(const std::vector<const ForwardLine*>& lines) {
  std::vector<size_t> all(lines.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

Duration RetryAfter(const net::HttpReply& reply) {
  const std::string text = reply.Header("retry-after");
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0) return {};
  return std::chrono::seconds(std::min(value, kMostRetryAfter));
}

std::string Said(const net::HttpReply& reply) {
  std::string text = reply.body.substr(0, kMaxSaid);
  std::ranges::replace(text, '\n', ' ');
  return "status " + std::to_string(reply.status) + (text.empty() ? "" : ": " + text);
}

class HttpSink : public LogSink {
 public:
  HttpSink(std::unique_ptr<net::HttpSession> session,
           std::vector<std::pair<std::string, std::string>> headers)
      : session_(std::move(session)), headers_(std::move(headers)) {}

  SendOutcome Send(const std::vector<const ForwardLine*>& lines) override {
    net::HttpRequest request;
    request.method = "POST";
    request.headers = headers_;
    Render(lines, &request);
    const auto reply = session_->Call(request, kSendTime, kMaxAnswer);
    if (!reply.ok()) return {AllOf(lines), 0, reply.status().message(), {}};
    if (reply->status >= 200 && reply->status < 300) return Accepted(*reply, lines);
    SendOutcome outcome{{}, 0, Said(*reply), RetryAfter(*reply)};
    if (IsTransient(reply->status)) {
      outcome.again = AllOf(lines);
    } else {
      outcome.rejected = lines.size();
    }
    return outcome;
  }

 protected:
  virtual void Render(const std::vector<const ForwardLine*>& lines, net::HttpRequest* to) = 0;
  // Of a reply 2xx.
  virtual SendOutcome Accepted(const net::HttpReply& /*reply*/,
                               const std::vector<const ForwardLine*>& /*lines*/) {
    return {};
  }

 private:
  const std::unique_ptr<net::HttpSession> session_;
  const std::vector<std::pair<std::string, std::string>> headers_;
};

class OpenSearchSink final : public HttpSink {
 public:
  OpenSearchSink(std::unique_ptr<net::HttpSession> session,
                 std::vector<std::pair<std::string, std::string>> headers, std::string index)
      : HttpSink(std::move(session), std::move(headers)), index_(std::move(index)) {}

 private:
  void Render(const std::vector<const ForwardLine*>& lines, net::HttpRequest* to) override {
    to->target = "/_bulk";
    to->headers.emplace_back("Content-Type", "application/x-ndjson");
    to->body = RenderBulk(index_, lines);
  }

  // Each document has a status of its own. 409: an earlier attempt has stored it.
  SendOutcome Accepted(const net::HttpReply& reply,
                       const std::vector<const ForwardLine*>& lines) override {
    const auto object = ParseJsonObject(reply.body);
    if (!object.ok()) return {AllOf(lines), 0, "the answer to _bulk is no JSON", {}};
    if (!GetBoolOr(*object, "errors", true)) return {};
    const json::value* const items = object->if_contains("items");
    if (items == nullptr || !items->is_array() || items->get_array().size() != lines.size())
      return {AllOf(lines), 0, "the answer to _bulk has not an item for each document", {}};
    SendOutcome outcome;
    for (size_t i = 0; i < lines.size(); ++i) AddItem(items->get_array()[i], i, &outcome);
    return outcome;
  }

  static void AddItem(const json::value& item, size_t number, SendOutcome* to) {
    const json::value* const action =
        item.is_object() ? item.get_object().if_contains("create") : nullptr;
    const bool known = action != nullptr && action->is_object();
    const int64_t status = known ? GetIntOr(action->get_object(), "status", 0) : 0;
    if ((status >= 200 && status < 300) || status == kConflict) return;
    to->error = "a document got status " + std::to_string(status);
    const json::value* const error = known ? action->get_object().if_contains("error") : nullptr;
    if (error != nullptr) to->error += ": " + ToText(*error).substr(0, kMaxSaid);
    if (status == kTooMany || status >= 500 || status == 0) {
      to->again.push_back(number);
    } else {
      ++to->rejected;
    }
  }

  const std::string index_;
};

class LokiSink final : public HttpSink {
 public:
  LokiSink(std::unique_ptr<net::HttpSession> session,
           std::vector<std::pair<std::string, std::string>> headers,
           std::map<std::string, std::string> labels)
      : HttpSink(std::move(session), std::move(headers)), labels_(std::move(labels)) {}

 private:
  void Render(const std::vector<const ForwardLine*>& lines, net::HttpRequest* to) override {
    to->target = "/loki/api/v1/push";
    to->headers.emplace_back("Content-Type", "application/json");
    to->body = RenderPush(labels_, lines);
  }

  const std::map<std::string, std::string> labels_;
};

// One line of a file with a password or token.
Result<std::string> ReadWord(const std::string& file) {
  TRY_ASSIGN(const std::string text, ReadFile(file, kMaxFile));
  return text.substr(0, text.find_first_of("\r\n"));
}

Result<std::vector<std::pair<std::string, std::string>>> HeadersOf(const ForwarderConfig& config) {
  std::vector<std::pair<std::string, std::string>> headers = {{"User-Agent", "shoal"}};
  if (!config.token_file.empty()) {
    TRY_ASSIGN(const std::string token, ReadWord(config.token_file));
    headers.emplace_back("Authorization", "Bearer " + token);
  } else if (!config.username.empty()) {
    TRY_ASSIGN(const std::string password, ReadWord(config.password_file));
    headers.emplace_back("Authorization",
                         "Basic " + EncodeBase64(config.username + ":" + password));
  }
  if (!config.tenant.empty()) headers.emplace_back("X-Scope-OrgID", config.tenant);
  return headers;
}

json::object Document(const ForwardLine& line) {
  return {{"@timestamp", FormatWall(line.time)},
          {"message", line.text},
          {"job", line.job},
          {"name", line.name},
          {"team", line.team},
          {"user", line.user},
          {"engine", line.engine},
          {"role", line.role},
          {"index", line.index},
          {"attempt", line.attempt + 1},
          {"offset", line.offset}};
}

}  // namespace

// `create` is what data streams take as well, and with the line's place as its id a document that
// is sent twice is stored once.
std::string RenderBulk(const std::string& index, const std::vector<const ForwardLine*>& lines) {
  std::string body;
  for (const ForwardLine* line : lines) {
    const std::string id = line->job + "." + line->role + "-" + std::to_string(line->index) + "." +
                           std::to_string(line->attempt) + "." + std::to_string(line->offset);
    body += ToText(json::object{{"create", json::object{{"_index", index}, {"_id", id}}}}) + "\n";
    body += ToText(Document(*line)) + "\n";
  }
  return body;
}

// Labels are few, as Loki needs it; the rest is structured metadata of each line. Entries of a
// stream with the same time and text would be taken for one.
std::string RenderPush(const std::map<std::string, std::string>& labels,
                       const std::vector<const ForwardLine*>& lines) {
  struct Stream {
    json::object labels;
    json::array values;
  };
  std::map<std::string, Stream> streams;
  for (const ForwardLine* line : lines) {
    Stream& stream = streams[line->team + "/" + line->engine + "/" + line->role];
    if (stream.labels.empty()) {
      for (const auto& [name, value] : labels) stream.labels[name] = value;
      stream.labels["service_name"] = "shoal";
      if (!line->team.empty()) stream.labels["team"] = line->team;
      stream.labels["engine"] = line->engine;
      stream.labels["role"] = line->role;
    }
    const int64_t time = line->time.time_since_epoch().count() * 1000 + line->nanoseconds;
    json::object metadata{{"job", line->job},
                          {"name", line->name},
                          {"user", line->user},
                          {"task", line->role + "-" + std::to_string(line->index)},
                          {"attempt", std::to_string(line->attempt + 1)},
                          {"offset", std::to_string(line->offset)}};
    stream.values.push_back(json::array{std::to_string(time), line->text, std::move(metadata)});
  }
  json::array all;
  for (auto& [name, stream] : streams)
    all.push_back(
        json::object{{"stream", std::move(stream.labels)}, {"values", std::move(stream.values)}});
  return ToText(json::object{{"streams", std::move(all)}});
}

Result<std::unique_ptr<LogSink>> MakeHttpSink(const ForwarderConfig& config) {
  net::HttpSessionOptions options;
  options.redirects = 0;
  if (!config.authorities_file.empty()) {
    TRY_ASSIGN(options.tls.authorities, ReadFile(config.authorities_file, kMaxFile));
  }
  TRY_ASSIGN(auto session, net::HttpSession::Make(config.url, std::move(options)));
  TRY_ASSIGN(auto headers, HeadersOf(config));
  if (config.kind == ForwarderConfig::Kind::kLoki)
    return std::unique_ptr<LogSink>(
        std::make_unique<LokiSink>(std::move(session), std::move(headers), config.labels));
  return std::unique_ptr<LogSink>(
      std::make_unique<OpenSearchSink>(std::move(session), std::move(headers), config.index));
}

Result<std::unique_ptr<LogSink>> MakeLogSink(const ForwarderConfig& config) {
  if (config.kind == ForwarderConfig::Kind::kSyslog) return MakeSyslogSink(config);
  return MakeHttpSink(config);
}

}  // namespace shoal::api
