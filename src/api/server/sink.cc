#include "api/server/sink.h"

#include <utility>

#include "api/rest/sse.h"

namespace shoal::api {
namespace {

class SseSink final : public Sink {
 public:
  explicit SseSink(std::shared_ptr<net::HttpReplyStream> stream) : stream_(std::move(stream)) {}
  bool Write(std::string_view event, std::string_view id, const json::value& data) override {
    return stream_->Write(SseText(event, id, data));
  }
  bool Ping() override { return stream_->Write(kSseComment); }
  size_t queued_bytes() const override { return stream_->queued_bytes(); }
  void Finish() override { stream_->Finish(); }
  void Refuse() override { stream_->Finish(); }

 private:
  const std::shared_ptr<net::HttpReplyStream> stream_;
};

class SocketSink final : public Sink {
 public:
  SocketSink(std::shared_ptr<net::HttpWebSocket> socket, int64_t number,
             std::function<void()> on_finish)
      : socket_(std::move(socket)), number_(number), on_finish_(std::move(on_finish)) {}
  bool Write(std::string_view event, std::string_view id, const json::value& data) override {
    json::object message{{"sub", number_}, {"event", event}};
    if (!id.empty()) message["id"] = id;
    message["data"] = data;
    return socket_->Send(ToText(message));
  }
  bool Ping() override { return true; }  // the connection has pings of its own
  size_t queued_bytes() const override { return socket_->queued_bytes(); }
  void Finish() override {
    on_finish_();
    (void)socket_->Send(ToText(json::object{{"done", number_}}));
  }
  void Refuse() override { RefuseSocket(socket_.get()); }

 private:
  const std::shared_ptr<net::HttpWebSocket> socket_;
  const int64_t number_;
  const std::function<void()> on_finish_;
};

}  // namespace

std::shared_ptr<Sink> MakeSseSink(std::shared_ptr<net::HttpReplyStream> stream) {
  return std::make_shared<SseSink>(std::move(stream));
}

std::shared_ptr<Sink> MakeSocketSink(std::shared_ptr<net::HttpWebSocket> socket, int64_t number,
                                     std::function<void()> on_finish) {
  return std::make_shared<SocketSink>(std::move(socket), number, std::move(on_finish));
}

void RefuseSocket(net::HttpWebSocket* socket) {
  constexpr uint16_t kPolicyViolation = 1008;
  socket->Close(kPolicyViolation, "the token has ended or its rights have changed; connect again");
}

}  // namespace shoal::api
