// The tracker of framework rabit without its sockets: what workers of rabit and XGBoost say and
// what they are answered, in both protocols that are spoken after the same magic number.
//
// Driven by tracker_process.cc. The bytes are in docs/formats/rabit.md. Source: dmlc-core
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

// What a connection's owner has to do.
struct RabitAction {
  enum class Kind : uint8_t {
    kSend,   // `text` to `connection`
    kClose,  // after what was sent; `text`: why, where it did wrong. No more of it is to be told.
    kAlarm,  // `text` to host and port, in a connection of its own: a worker ends itself by it
    kPrint,  // `text`, which a worker wants people to see
    kNote,   // `text` of our own for people
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

  // `host`: the numeric address that it comes from, which the others will be told.
  void Opened(Connection connection, std::string host);
  // Bytes as they come. Of each connection at most one message is held.
  Actions Received(Connection connection, std::string_view bytes);
  Actions Closed(Connection connection);
  // True while it has not said what it wants: somebody else's, if it stays so.
  bool IsSilent(Connection connection) const;

 private:
  struct Worker;

  // A step on what is buffered: false if more bytes are needed, an error if they are wrong.
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

  // To `pending_`, if it speaks as the others there do, and they are not all there already.
  Status Enlist(Worker* worker);
  // All of `pending_`, which it empties, in the order of their ranks: by task id where these are
  // 0 … n-1, else by host, then as they came.
  std::vector<Worker*> TakePending();
  Worker* Find(Connection connection) const;
  void Send(const Worker& worker, std::string bytes);
  void Close(Worker* worker, std::string why = {});
  void Say(RabitAction::Kind kind, std::string text);

  const int workers_;
  std::map<Connection, std::unique_ptr<Worker>> connections_;
  Actions actions_;
  std::vector<Connection> pending_;  // that want a rank, as they came

  // The binary group: from its ranks to everybody's shutdown.
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

  // The JSON group: where each worker hears that another has failed.
  struct Alarm {
    std::string host;
    uint16_t port = 0;
  };
  std::vector<Alarm> alarms_;  // by rank
  bool alarmed_ = false;
};

}  // namespace shoal::rendezvous
