// Deadlines are by hand (poll); what is HTTP about the reply is Beast's parser.
#include "net/http_exchange.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cctype>
#include <optional>

namespace shoal::net {
namespace {

namespace http = boost::beast::http;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr uint32_t kMaxHead = 64 << 10;
constexpr size_t kBlock = 64 << 10;
constexpr int kMostInterim = 8;

class Exchange final : public HttpClientExchange {
 public:
  Exchange(std::unique_ptr<ByteChannel> channel, bool head_only)
      : channel_(std::move(channel)), head_only_(head_only) {
    Begin();
  }
  ByteChannel* channel() { return channel_.get(); }

  Status ReadHead(Deadline deadline) {
    for (int interim = 0;; ++interim) {
      while (!parser_->is_header_done()) TRY(input_.empty() ? Take(deadline) : TakeRest(deadline));
      const unsigned status = parser_->get().result_int();
      if (status / 100 != 1 || status == 101) break;
      if (interim == kMostInterim) return DataLoss("the answer never comes after its interim ones");
      Begin();
    }
    const auto& message = parser_->get();
    head_.status = static_cast<int>(message.result_int());
    for (const auto& field : message) {
      std::string name(field.name_string());
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      head_.headers.emplace_back(std::move(name), std::string(field.value()));
    }
    return Status::Ok();
  }

  const HttpReply& head() const override { return head_; }

  Result<std::string> Next(milliseconds timeout) override {
    const Deadline deadline = SteadyClock::now() + timeout;
    while (parser_->get().body().empty()) {
      if (parser_->is_done()) return std::string();
      TRY(Take(deadline));
    }
    return std::exchange(parser_->get().body(), {});
  }

  void Cancel() override {
    cancelled_ = true;
    channel_->Cancel();
  }

  std::unique_ptr<ByteChannel> Release(std::string* early) override {
    *early = std::move(input_);
    return std::move(channel_);
  }

  std::unique_ptr<ByteChannel> TakeForReuse() override {
    const bool whole = parser_->is_done() && parser_->get().body().empty() && input_.empty();
    if (!whole || !parser_->keep_alive() || cancelled_) return nullptr;
    return std::move(channel_);
  }

 private:
  void Begin() {
    parser_.emplace();
    parser_->header_limit(kMaxHead);
    parser_->body_limit(boost::none);  // taken out as it comes
    parser_->eager(true);
    parser_->skip(head_only_);
  }

  // What came after an interim reply may be the reply, or a part of it.
  Status TakeRest(Deadline deadline) {
    const size_t before = input_.size();
    TRY(Parse());
    return input_.size() == before && !parser_->is_header_done() ? Take(deadline) : Status::Ok();
  }

  Status Take(Deadline deadline) {
    if (cancelled_) return Cancelled("the call was ended");
    const size_t before = input_.size();
    input_.resize(before + kBlock);
    const auto got = ReadSome(channel_.get(), input_.data() + before, kBlock, deadline);
    input_.resize(before + got.value_or(0));
    if (cancelled_) return Cancelled("the call was ended");
    if (!got.ok()) return got.status();
    return *got == 0 ? TakeEnd() : Parse();
  }

  Status TakeEnd() {
    if (!parser_->got_some()) return Unavailable("the connection was closed without an answer");
    boost::system::error_code error;
    parser_->put_eof(error);
    if (error) return Unavailable("the connection broke in the middle of an answer");
    return Status::Ok();
  }

  Status Parse() {
    while (!input_.empty() && !parser_->is_done()) {
      boost::system::error_code error;
      const size_t taken = parser_->put(boost::asio::buffer(input_), error);
      input_.erase(0, taken);
      if (error == http::error::need_more) return Status::Ok();
      if (error) return DataLoss("the answer is not HTTP: " + error.message());
      if (taken == 0) return Status::Ok();
    }
    return Status::Ok();
  }

  std::unique_ptr<ByteChannel> channel_;
  const bool head_only_;
  std::optional<http::response_parser<http::string_body>> parser_;
  std::string input_;  // come, not parsed
  HttpReply head_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace

std::string RenderRequest(const HttpRequest& request, const std::string& host,
                          const std::string& upgrade, bool keep_alive) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\nHost: " + host + "\r\n";
  if (!upgrade.empty()) {
    text += "Connection: Upgrade\r\nUpgrade: " + upgrade + "\r\n";
  } else if (!keep_alive) {
    text += "Connection: close\r\n";
  }
  for (const auto& [name, value] : request.headers) text += name + ": " + value + "\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT")
    text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + "\r\n" + request.body;
}

Result<std::unique_ptr<HttpClientExchange>> BeginExchange(std::unique_ptr<ByteChannel> channel,
                                                          std::string_view request,
                                                          Deadline deadline) {
  auto exchange = std::make_unique<Exchange>(std::move(channel), request.starts_with("HEAD "));
  TRY(SendAll(exchange->channel(), request, deadline));
  TRY(exchange->ReadHead(deadline));
  return std::unique_ptr<HttpClientExchange>(std::move(exchange));
}

Status ReadWholeBody(HttpStream* stream, Deadline deadline, size_t max_body, std::string* body) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now());
    TRY_ASSIGN(const std::string part, stream->Next(std::max(left, milliseconds(0))));
    if (part.empty()) return Status::Ok();
    if (body->size() + part.size() > max_body)
      return ResourceExhausted("the answer is longer than " + std::to_string(max_body) + " bytes");
    *body += part;
  }
}

std::string HttpReply::Header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return "";
}

std::string PercentEncode(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace shoal::net
