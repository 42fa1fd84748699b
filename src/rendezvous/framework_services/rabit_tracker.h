// The tracker of framework rabit without sockets: messages of rabit's and XGBoost's workers in,
// answers out, in both protocols that follow the same magic number.
//
// Driven by rabit_tracker_server.cc. The bytes are in docs/formats/rabit.md. Source: dmlc-core
// tracker/dmlc_tracker/tracker.py and rabit src/allreduce_base.cc (binary, XGBoost before 2.1);
// XGBoost src/collective/{protocol.h,comm.cc,tracker.cc} (JSON, since 2.1).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "rendezvous/framework_services/rabit_topology.h"

namespace shoal::rendezvous {

// What the owner of the connections has to do.
struct RabitAction {
  enum class Kind : uint8_t {
    kSend,   // `text` to `connection`
    kClose,  // after pending sends; `text`: the error, if any. Report nothing more of it.
    kAlarm,  // `text` to host and port over a new connection: the worker there ends itself
    kPrint,  // `text` of a worker, for people
    kNote,   // `text` of the tracker, for people
  };
  Kind kind = Kind::kSend;
  uint64_t connection = 0;
  std::string text;
  std::string host;
  uint16_t port = 0;
};

// One job's tracker. Not thread-safe. Groups form one after the other: a program may end its
// communicator and make another.
class RabitTracker {
 public:
  using Connection = uint64_t;
  using Actions = std::vector<RabitAction>;
  static constexpr size_t kMostBytes = size_t{1} << 20;  // of one message

  // Of a job with this many workers, 1 … 100,000.
  explicit RabitTracker(int workers);
  ~RabitTracker();

  // `host`: the connection's numeric address, which other workers will be told.
  void Opened(Connection connection, std::string host);
  // Received bytes. At most one message per connection is buffered.
  Actions Received(Connection connection, std::string_view bytes);
  Actions Closed(Connection connection);
  // True while the connection has not sent a complete hello; if that lasts, it is not a worker's.
  bool IsSilent(Connection connection) const;

 private:
  struct Worker;

  // One step on the buffered bytes: false if more are needed, an error if they are malformed.
  Result<bool> Step(Worker* worker);
  Result<bool> ReadMagic(Worker* worker);
  Result<bool> ReadHello(Worker* worker);
  Result<bool> ReadPrint(Worker* worker);

  // Binary, in rabit_binary.cc.
  Result<bool> ReadBinaryHello(Worker* worker);
  Status StartBinary(Worker* worker, bool recover);
  Status ShutDown(Worker* worker);
  Result<bool> ReadGood(Worker* worker);
  Result<bool> ReadErrors(Worker* worker);
  Result<bool> ReadPort(Worker* worker);
  void AssignRanks();
  void LinkNext();

  // JSON, in rabit_json.cc.
  Result<bool> ReadJsonHello(Worker* worker);
  Result<bool> ReadJsonCommand(Worker* worker);
  Status StartJson(Worker* worker, const json::object& command);
  void JsonFailed(const Worker& worker, const json::object& command);
  void FormRing();

  // Appends to `pending_`, unless the worker speaks another protocol than those there, or they are
  // complete already.
  Status Enlist(Worker* worker);
  // Empties `pending_` and gives its workers in the order of their ranks: by task id where these
  // are 0 … n-1, else by host, then by arrival.
  std::vector<Worker*> TakePending();
  Worker* Find(Connection connection) const;
  void Send(const Worker& worker, std::string bytes);
  void Close(Worker* worker, std::string why = {});
  void Say(RabitAction::Kind kind, std::string text);

  const int workers_;
  std::map<Connection, std::unique_ptr<Worker>> connections_;
  Actions actions_;
  std::vector<Connection> pending_;  // that want a rank, as they came

  // The binary group: from its ranks to the shutdown of all workers.
  std::vector<RabitTopology> links_;
  bool ranked_ = false;
  std::map<std::string, int> rank_of_task_;
  std::set<int> down_;
  std::vector<Connection> linking_;  // have a rank; the first is being told whom to connect to
  struct Listener {
    std::string host;
    uint16_t port = 0;
    int accepts = 0;  // how many more it waits for
  };
  std::map<int, Listener> listeners_;  // by rank

  // The JSON group: the address at which each worker is told that another has failed.
  struct Alarm {
    std::string host;
    uint16_t port = 0;
  };
  std::vector<Alarm> alarms_;  // by rank
  bool alarmed_ = false;
};

}  // namespace shoal::rendezvous
