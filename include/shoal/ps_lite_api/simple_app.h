// ps-lite's SimpleApp and Postoffice over shoal/ps_lite_api/postoffice.h; and the functions of its
// ps.h, in both generations: since 2018 a customer's number comes first, until then there was none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <shoal/ps_lite_api/environment.h>
#include <shoal/ps_lite_api/postoffice.h>
#include <shoal/ps_lite_api/sarray.h>

namespace ps {

#if defined(USE_KEY32) && USE_KEY32
using Key = uint32_t;
#else
using Key = uint64_t;
#endif
static const Key kMaxKey = std::numeric_limits<Key>::max();
static const int kScheduler = 1;
static const int kServerGroup = 2;
static const int kWorkerGroup = 4;

using Customer = ::shoal::ps::lite::Customer;

// The functions of ps-lite's class of this name that programs use.
class Postoffice {
 public:
  static Postoffice* Get() {
    static Postoffice one;
    return &one;
  }
  static int WorkerRankToID(int rank) { return rank * 2 + 9; }
  static int ServerRankToID(int rank) { return rank * 2 + 8; }
  static int IDtoRank(int id) { return id < 8 ? 0 : (id - 8) / 2; }
  int num_workers() const { return post().num_workers(); }
  int num_servers() const { return post().num_servers(); }
  int my_rank() const { return post().rank(); }
  int is_worker() const { return post().is_worker(); }
  int is_server() const { return post().is_server(); }
  int is_scheduler() const { return post().is_scheduler(); }
  bool is_recovery() const { return false; }
  std::vector<int> GetNodeIDs(int group) const { return post().IdsOf(group); }
  void Barrier(int customer_id, int group) { post().Barrier(customer_id, group); }
  void Barrier(int group) { post().Barrier(0, group); }
  void Start(int customer_id, const char* /*argv0*/, bool do_barrier) {
    post().Start(customer_id, do_barrier);
  }
  void Start(const char* /*argv0*/, bool do_barrier) { post().Start(0, do_barrier); }
  void Finalize(int customer_id, bool do_barrier = true) {
    post().Finalize(customer_id, do_barrier);
  }
  void Finalize(bool do_barrier = true) { post().Finalize(0, do_barrier); }
  // A node that dies ends the job, so there are none.
  std::vector<int> GetDeadNodes(int /*seconds*/ = 60) const { return {}; }
  void RegisterExitCallback(const std::function<void()>& callback) {
    post().RegisterExitCallback(callback);
  }
  // Which keys each server keeps: equal parts of all keys.
  const std::vector<Range>& GetServerKeyRanges() {
    const std::lock_guard<std::mutex> lock(mu_);
    const auto n = static_cast<size_t>(num_servers());
    if (ranges_.size() == n) return ranges_;
    ranges_.clear();
    const uint64_t part = kMaxKey / n;
    for (uint64_t i = 0; i < n; ++i) ranges_.emplace_back(part * i, part * (i + 1));
    return ranges_;
  }

 private:
  static ::shoal::ps::lite::Postoffice& post() { return ::shoal::ps::lite::Postoffice::Get(); }
  std::mutex mu_;
  std::vector<Range> ranges_;
};

struct SimpleData {
  int head = 0;
  std::string body;
  int sender = 0;
  int timestamp = 0;
  int customer_id = 0;
};

// A number and a string to any node or group, answered by each: with nothing, if the program sets
// no handle of its own within a second of the first request.
class SimpleApp {
 public:
  using Handle = std::function<void(const SimpleData& recved, SimpleApp* app)>;
  explicit SimpleApp(int app_id) : SimpleApp(app_id, 0) {}
  SimpleApp(int app_id, int customer_id) : SimpleApp() {
    Attach(app_id, customer_id, [this](const Message& message) { Process(message); });
  }
  virtual ~SimpleApp() { Detach(); }

  // The number of the request, for Wait.
  virtual int Request(int head, const std::string& body, int recv_id) {
    Message message = NewMessage(head, body);
    message.timestamp = obj_->NewRequest(recv_id);
    message.request = true;
    message.customer = obj_->customer_id();
    for (const int node : Postoffice::Get()->GetNodeIDs(recv_id)) {
      message.recver = node;
      ::shoal::ps::lite::Postoffice::Get().Send(message);
    }
    return message.timestamp;
  }
  // Throws shoal::ps::Error when a node is gone.
  virtual void Wait(int timestamp) { obj_->WaitRequest(timestamp); }
  virtual void Response(const SimpleData& request, const std::string& body = "") {
    Message message = NewMessage(request.head, body);
    message.timestamp = request.timestamp;
    message.customer = request.customer_id;
    message.recver = request.sender;
    ::shoal::ps::lite::Postoffice::Get().Send(message);
  }
  virtual void set_request_handle(const Handle& handle) {
    CHECK(handle) << "invalid request handle";
    const std::lock_guard<std::mutex> lock(handle_mu_);
    request_handle_ = handle;
    handled_ = true;
    handle_is_set_.notify_all();
  }
  virtual void set_response_handle(const Handle& handle) {
    CHECK(handle) << "invalid response handle";
    const std::lock_guard<std::mutex> lock(handle_mu_);
    response_handle_ = handle;
  }
  virtual Customer* get_customer() { return obj_.get(); }

 protected:
  using Message = ::shoal::ps::lite::Message;
  SimpleApp() {
    request_handle_ = [](const SimpleData& received, SimpleApp* app) { app->Response(received); };
    response_handle_ = [](const SimpleData&, SimpleApp*) {};
  }
  void Attach(int app_id, int customer_id, Customer::Handler handler) {
    // The customer's thread may have a message before obj_ is there: it waits in Process.
    const std::lock_guard<std::mutex> lock(handle_mu_);
    obj_ = std::make_unique<Customer>(app_id, customer_id, std::move(handler));
  }
  // Ends the customer's thread. First in the destructor of every class that attaches.
  void Detach() {
    if (obj_ != nullptr && obj_->IsOfThisProcess()) {
      const std::lock_guard<std::mutex> lock(handle_mu_);
      handled_ = true;
      handle_is_set_.notify_all();
    }
    obj_.reset();
  }
  void Process(const Message& message) {
    const SimpleData data{message.head, message.body, message.sender, message.timestamp,
                          message.customer};
    HandleOf(message.request)(data, this);
  }

  std::unique_ptr<Customer> obj_;

 private:
  Message NewMessage(int head, const std::string& body) const {
    Message message;
    message.head = head;
    message.body = body;
    message.simple = true;
    message.app = obj_->app_id();
    return message;
  }
  Handle HandleOf(bool request) {
    std::unique_lock<std::mutex> lock(handle_mu_);
    if (!request) return response_handle_;
    // Another node may be quicker than this program's next line.
    if (!handled_) handle_is_set_.wait_for(lock, std::chrono::seconds(1), [&] { return handled_; });
    handled_ = true;
    return request_handle_;
  }

  std::mutex handle_mu_;
  std::condition_variable handle_is_set_;
  Handle request_handle_;   // guarded by handle_mu_
  Handle response_handle_;  // guarded by handle_mu_
  bool handled_ = false;    // guarded by handle_mu_; requests need not wait for a handle any more
};

inline int NumWorkers() { return Postoffice::Get()->num_workers(); }
inline int NumServers() { return Postoffice::Get()->num_servers(); }
inline bool IsWorker() { return Postoffice::Get()->is_worker() != 0; }
inline bool IsServer() { return Postoffice::Get()->is_server() != 0; }
inline bool IsScheduler() { return Postoffice::Get()->is_scheduler() != 0; }
inline int MyRank() { return Postoffice::Get()->my_rank(); }
inline void Start(int customer_id, const char* /*argv0*/ = nullptr) {
  ::shoal::ps::lite::Postoffice::Get().Start(customer_id, true);
}
inline void Start(const char* /*argv0*/ = nullptr) { Start(0); }
inline void StartAsync(int customer_id, const char* /*argv0*/ = nullptr) {
  ::shoal::ps::lite::Postoffice::Get().Start(customer_id, false);
}
inline void StartAsync(const char* /*argv0*/ = nullptr) { StartAsync(0); }
inline void Finalize(int customer_id, const bool do_barrier = true) {
  ::shoal::ps::lite::Postoffice::Get().Finalize(customer_id, do_barrier);
}
inline void Finalize(const bool do_barrier = true) { Finalize(0, do_barrier); }
inline void RegisterExitCallback(const std::function<void()>& callback) {
  Postoffice::Get()->RegisterExitCallback(callback);
}

}  // namespace ps
