// KVServer of shoal/ps_lite_compat.h, and the handle that adds.
#pragma once

#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <shoal/ps_lite_api/kv_pairs.h>

namespace ps {

// A server: its handle gets every request, in one thread, and answers each once with Response, then
// or later, from any thread.
template <typename Val>
class KVServer : public SimpleApp {
 public:
  using ReqHandle =
      std::function<void(const KVMeta& req_meta, const KVPairs<Val>& req_data, KVServer* server)>;
  explicit KVServer(int app_id) {
    Attach(app_id, app_id, [this](const Message& message) { Received(message); });
  }
  ~KVServer() override { Detach(); }

  void set_request_handle(const ReqHandle& handle) {
    CHECK(handle) << "invalid request handle";
    const std::lock_guard<std::mutex> lock(mu_);
    handle_ = handle;
    for (const Message& message : early_) Handle(message);
    early_.clear();
  }
  using SimpleApp::Response;
  void Response(const KVMeta& request, const KVPairs<Val>& answer = KVPairs<Val>()) {
    Message message;
    message.app = obj_->app_id();
    message.customer = request.customer_id;
    message.push = request.push;
    message.pull = request.pull;
    message.head = request.cmd;
    message.timestamp = request.timestamp;
    message.recver = request.sender;
    lite_kv::AddParts(answer, &message);
    ::shoal::ps::lite::Postoffice::Get().Send(message);
  }

 private:
  void Received(const Message& message) {
    if (message.simple) return Process(message);
    const std::lock_guard<std::mutex> lock(mu_);
    // A worker may be quicker than this program's next line.
    if (!handle_) return early_.push_back(message);
    Handle(message);
  }
  void Handle(const Message& message) {
    const KVMeta meta{message.head,   message.push,      message.pull,
                      message.sender, message.timestamp, message.customer};
    const KVPairs<Val> pairs = lite_kv::PairsOf<Val>(message);
    if (!pairs.lens.empty()) CHECK_EQ(pairs.lens.size(), pairs.keys.size());
    handle_(meta, pairs, this);
  }

  std::mutex mu_;
  ReqHandle handle_;            // guarded by mu_
  std::vector<Message> early_;  // guarded by mu_
};

// One value a key: pushed values are added.
template <typename Val>
struct KVServerDefaultHandle {
  void operator()(const KVMeta& req_meta, const KVPairs<Val>& req_data, KVServer<Val>* server) {
    const size_t n = req_data.keys.size();
    KVPairs<Val> answer;
    if (req_meta.push) CHECK_EQ(n, req_data.vals.size());
    if (req_meta.pull) {
      answer.keys = req_data.keys;
      answer.vals.resize(n);
    }
    for (size_t i = 0; i < n; ++i) {
      Val& value = store[req_data.keys[i]];
      if (req_meta.push) value += req_data.vals[i];
      if (req_meta.pull) answer.vals[i] = value;
    }
    server->Response(req_meta, answer);
  }
  std::unordered_map<Key, Val> store;
};

}  // namespace ps
