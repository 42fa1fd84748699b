// The implementation of Postoffice and Customer (shoal/ps_lite_api/postoffice.h): one node of a
// ps-lite job.
//
// The scheduler is connected to all nodes and relays messages without a direct connection; workers
// have a connection to every server. Each connection has a thread that receives.
// postoffice_node.cc: joining, connections, barriers; postoffice.cc: what programs call.
#pragma once

#include <fmt/format.h>
#include <shoal/ps_lite_api/postoffice.h>

#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "bindings/convert.h"
#include "bindings/owner_process.h"
#include "bindings/ps_lite/acceptor.h"
#include "bindings/ps_lite/connection.h"
#include "bindings/ps_lite/node_config.h"

namespace shoal::ps::v1::lite {

using bindings::Connection;
using bindings::NodeConfig;

inline constexpr const char* kOwnNode =
    "fork before ps::Start and start a node of its own in each process, or leave requests to the "
    "parent";

[[noreturn]] inline void Throw(const shoal::Status& status) {
  throw Error(bindings::ToPublic(status));
}
inline void Check(const shoal::Status& status) {
  if (!status.ok()) Throw(status);
}

inline constexpr int kControl = -1;  // Message::app of what nodes say to each other
enum ControlKind : int { kJoin = 1, kWelcome, kHello, kBarrier, kPassed, kBye, kLost, kConflict };
inline Message Control(int what, std::string body = {}) {
  Message message;
  message.app = kControl;
  message.head = what;
  message.body = std::move(body);
  return message;
}

// "server 2"
std::string NameOf(int id);

struct Customer::Impl {
  const bindings::OwnerProcess owner;
  int app = 0;
  int customer = 0;
  Handler handler;
  Postoffice::Impl* post = nullptr;
  Mutex mu;
  CondVar changed;
  std::deque<Message> queue GUARDED_BY(mu);
  std::vector<std::pair<int, int>> tracker GUARDED_BY(mu);  // by timestamp: expected, answered
  bool stop GUARDED_BY(mu) = false;
  shoal::Status failed GUARDED_BY(mu);
  std::thread thread;

  void Loop();
  void CheckOwner() const { Check(owner.Check("this ps-lite customer", kOwnNode)); }
  void Accept(Message message) {
    const MutexLock lock(mu);
    queue.push_back(std::move(message));
    changed.notify_all();
  }
  void Fail(const shoal::Status& why) {
    const MutexLock lock(mu);
    if (failed.ok()) failed = why;
    changed.notify_all();
  }
};

struct Postoffice::Impl {
  std::atomic<const bindings::OwnerProcess*> owner{nullptr};  // since Start; null: not started
  Mutex mu;
  CondVar changed;
  std::map<std::string, std::string> variables GUARDED_BY(mu);  // instead of the process's own
  std::atomic<bool> config_known{false};
  NodeConfig
      config;  // written under mu before config_known; then constant but for its port, until Close
  enum class Phase : uint8_t { kIdle, kStarting, kStarted, kEnding };
  Phase phase GUARDED_BY(mu) = Phase::kIdle;
  std::set<int> customers_in GUARDED_BY(mu);                              // that have started
  std::atomic<int> id = 0;                                                // constant once welcomed
  std::map<int, std::shared_ptr<Connection>> connections GUARDED_BY(mu);  // by node
  std::set<int> gone GUARDED_BY(mu);                                      // have said good-bye
  std::vector<std::string> servers GUARDED_BY(mu);                        // addresses by rank
  std::map<std::pair<int, int>, Customer::Impl*> customers GUARDED_BY(mu);
  struct Undelivered {
    Message message;
    TimePoint since;
  };
  std::deque<Undelivered> undelivered GUARDED_BY(mu);  // for customers that are not there yet
  bool watching GUARDED_BY(mu) = false;                // WatchUndelivered runs
  struct BarrierCount {
    int entered = 0;      // scheduler: nodes in the present round
    uint64_t passed = 0;  // rounds that all nodes have passed
  };
  std::map<int, BarrierCount> barriers GUARDED_BY(mu);  // by group
  struct Newcomer {
    std::shared_ptr<Connection> connection;
    bool server;
    int wanted;
    std::string address;
  };
  std::vector<Newcomer> newcomers GUARDED_BY(mu);  // scheduler
  shoal::Status failed GUARDED_BY(mu);
  std::optional<TimePoint> ranked_since
      GUARDED_BY(mu);                   // scheduler: since when all have their ranks
  bool failing GUARDED_BY(mu) = false;  // `failed` is about to be set
  std::unique_ptr<bindings::Acceptor> acceptor;
  std::vector<std::thread> threads GUARDED_BY(mu);  // until the end
  std::function<void()> exit_callback;

  // At the head of every call: before any lock is taken, which the parent may have held.
  void CheckOwner() const {
    const bindings::OwnerProcess* const maker = owner;
    if (maker != nullptr) Check(maker->Check("this ps-lite node", kOwnNode));
  }
  // Which node this is, from the variables when it is asked for first. Throws Error.
  const NodeConfig& Config();
  void Open();
  void Close();
  void Join();
  void Listen();
  void RejectOtherJob();
  std::shared_ptr<Connection> Dial(const std::string& address, TimePoint until);
  void ReceiveFrom(std::shared_ptr<Connection> connection);
  void HandleMessage(const std::shared_ptr<Connection>& connection, Message message);
  void HandleControl(const std::shared_ptr<Connection>& connection, const Message& message);
  void HandleJoin(const std::shared_ptr<Connection>& connection, const Message& message);
  void HandleWelcome(const Message& message);
  void AssignRanks();
  void CountBarrier(int group);
  void Fail(const shoal::Status& why);
  void Deliver(Message message, std::optional<TimePoint> since = {});
  void WatchUndelivered();
  shoal::Status Await(MutexLock* lock, const std::function<bool()>& done,
                      std::optional<TimePoint> until = {}) REQUIRES(mu);
  std::shared_ptr<Connection> ConnectionTo(int node);
  std::vector<int> Ids(int group) const;
  void StartThread(std::function<void()> run) {
    const MutexLock lock(mu);
    threads.emplace_back(std::move(run));
  }
};

}  // namespace shoal::ps::v1::lite
