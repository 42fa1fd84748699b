#include "rendezvous/framework_services/horovod_store.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "rendezvous/framework_services/mpi_launch.h"

namespace shoal::rendezvous {
namespace {

constexpr std::string_view kEnd = "\r\n\r\n";
constexpr size_t kMostName = 1024;

std::string Response(std::string_view status, std::string_view body = {}) {
  std::string text = "HTTP/1.0 ";
  text.append(status).append("\r\nContent-Length: ").append(std::to_string(body.size()));
  return text.append("\r\nConnection: close").append(kEnd).append(body);
}

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string_view TakeWord(std::string_view* text, char end) {
  const std::string_view word = text->substr(0, text->find(end));
  text->remove_prefix(std::min(word.size() + 1, text->size()));
  return word;
}

// "PUT /global/0 HTTP/1.1"
Result<HorovodStoreRequest> ReadRequestLine(std::string_view line) {
  HorovodStoreRequest request;
  const std::string_view method = TakeWord(&line, ' ');
  if (method == "PUT") {
    request.method = HorovodStoreRequest::Method::kPut;
  } else if (method == "DELETE") {
    request.method = HorovodStoreRequest::Method::kDelete;
  } else if (method != "GET") {
    return InvalidArgument("expected GET, PUT or DELETE");
  }
  std::string_view path = TakeWord(&line, ' ');
  if (!line.starts_with("HTTP/1.")) return InvalidArgument("expected HTTP/1.0 or 1.1");
  if (!TakeWord(&path, '/').empty()) return InvalidArgument("expected the path /SCOPE/KEY");
  request.scope = TakeWord(&path, '/');
  request.key = path;
  if (request.scope.empty() || request.key.empty() || path.find('/') != std::string_view::npos ||
      request.scope.size() > kMostName || request.key.size() > kMostName) {
    return InvalidArgument("expected the path /SCOPE/KEY");
  }
  return request;
}

// The value of Content-Length, 0 without one.
Result<size_t> ReadLength(std::string_view lines) {
  size_t length = 0;
  while (!lines.empty()) {
    std::string_view line = TakeWord(&lines, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view name = TakeWord(&line, ':');
    if (SameName(name, "transfer-encoding"))
      return InvalidArgument("expected a body with a Content-Length");
    if (!SameName(name, "content-length")) continue;
    while (line.starts_with(' ')) line.remove_prefix(1);
    while (line.ends_with(' ')) line.remove_suffix(1);
    if (line.empty() || line.size() > 9 ||
        line.find_first_not_of("0123456789") != std::string_view::npos) {
      return InvalidArgument("expected a number of bytes in Content-Length");
    }
    length = std::stoul(std::string(line));
  }
  if (length > HorovodRequestReader::kMostBody)
    return ResourceExhausted("expected a value of at most 4 MiB");
  return length;
}

}  // namespace

Result<std::optional<HorovodStoreRequest>> HorovodRequestReader::Feed(std::string_view bytes) {
  held_.append(bytes);
  if (!head_) {
    const size_t end = held_.find(kEnd);
    if (end > kMostHead && held_.size() > kMostHead)
      return ResourceExhausted("expected a head of at most 8 KiB");
    if (end == std::string::npos) return std::optional<HorovodStoreRequest>();
    const std::string_view head = std::string_view(held_).substr(0, end);
    const size_t line = head.find("\r\n");
    TRY_ASSIGN(head_, ReadRequestLine(head.substr(0, line)));
    TRY_ASSIGN(body_bytes_,
               ReadLength(line == std::string_view::npos ? "" : head.substr(line + 2)));
    body_at_ = end + kEnd.size();
  }
  if (held_.size() - body_at_ < body_bytes_) return std::optional<HorovodStoreRequest>();
  head_->body = held_.substr(body_at_, body_bytes_);
  return std::exchange(head_, std::nullopt);
}

Result<HorovodStore> HorovodStore::Make(std::string_view hosts) {
  HorovodStore store;
  TRY_ASSIGN(const std::vector<SlotHost> slots, ReadSlots(hosts));
  for (const SlotHost& host : slots) {
    store.ranks_of_["global"] += static_cast<size_t>(host.slots);
    store.ranks_of_["local_" + host.name] = static_cast<size_t>(host.slots);
    for (int i = 0; i < host.slots; ++i) ++store.ranks_of_["cross_" + std::to_string(i)];
  }
  return store;
}

std::string HorovodStore::Answer(HorovodStoreRequest request) {
  if (request.method == HorovodStoreRequest::Method::kGet) {
    const auto scope = values_.find(request.scope);
    if (scope == values_.end()) return Response("404 Not Found");
    const auto value = scope->second.find(request.key);
    if (value == scope->second.end()) return Response("404 Not Found");
    return Response("200 OK", value->second);
  }
  if (request.method == HorovodStoreRequest::Method::kPut) {
    const size_t added = request.scope.size() + request.key.size() + request.body.size();
    if (bytes_ + added > kMostBytes || keys_ >= kMostKeys)
      return Response("507 Insufficient Storage");
    const auto [value, fresh] = values_[request.scope].try_emplace(request.key);
    if (fresh) ++keys_;
    bytes_ += fresh ? added : request.body.size();
    bytes_ -= value->second.size();
    value->second = std::move(request.body);
    return Response("200 OK");
  }
  const auto ranks = ranks_of_.find(request.scope);
  if (ranks == ranks_of_.end()) return Response("200 OK");
  std::set<std::string>& left = left_[request.scope];
  if (left.size() < ranks->second) left.insert(std::move(request.key));
  if (left.size() < ranks->second) return Response("200 OK");
  for (const auto& [key, value] : values_[request.scope]) {
    bytes_ -= request.scope.size() + key.size() + value.size();
    --keys_;
  }
  values_.erase(request.scope);
  left_.erase(request.scope);
  return Response("200 OK");
}

std::string HorovodStore::Refusal(const Status& why) {
  const bool large = why.code() == Code::kResourceExhausted;
  return Response(large ? "413 Payload Too Large" : "400 Bad Request", why.message() + "\n");
}

}  // namespace shoal::rendezvous
