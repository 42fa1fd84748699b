// A connection to the coordinator that reconnects: finds the address, dials, proves the token in
// both directions, sends heartbeats, and dials again after a loss. Used by launchers (launcher.cc),
// controllers (coordinator_client.cc) and transfers.
//
// Everything belongs to the loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "net/event_loop.h"

namespace shoal::rendezvous {

struct CoordinatorAddress {
  std::string host;
  uint16_t port = 0;
};

// Reads DIR/coordinator.json; Unavailable while there is none.
Result<CoordinatorAddress> ReadCoordinatorFile(const std::string& job_dir);
// Writes DIR/coordinator.json for this process.
Status WriteCoordinatorFile(const std::string& job_dir, const CoordinatorAddress& address,
                            WallTime started);
// The job's secret, in DIR/token.
Result<std::string> ReadTokenFile(const std::string& job_dir);

struct CoordinatorConnectionOptions {
  // Called before every dial; an error is retried.
  std::function<Result<CoordinatorAddress>()> find;
  std::string token;
  std::string who = "the coordinator";  // for messages
  // How long to dial since the start, or since the connection was lost. 0: one attempt.
  Duration give_up_after = std::chrono::seconds(30);
  Duration at_first{0};  // since the start, if that is longer
  // Whether the coordinator's process lives, as far as known here; called when that time is over. A
  // living one may be paused (SIGSTOP, a debugger), so it is dialled for longer. Optional.
  std::function<bool()> lives;
  Duration heartbeat = std::chrono::seconds(1);
  Duration silence =
      std::chrono::seconds(5);  // of the coordinator, after which the connection counts as lost
};

struct CoordinatorConnectionCallbacks {
  // The fields of the first message after the proof; "kind" is one of them.
  std::function<json::object()> hello;
  // Fields of a heartbeat.
  std::function<json::object()> heartbeat;
  // Both sides have proved the token.
  std::function<void()> on_up;
  std::function<void(const std::string& type, const json::object& message)> on_message;
  std::function<void(std::string_view frame)> on_binary;
  // All queued bytes were sent.
  std::function<void()> on_drain;
  // The connection was lost and is being dialled again.
  std::function<void(const Status& why)> on_down;
  // No more attempts: OK when the coordinator announced its end, Unauthenticated for a wrong token,
  // otherwise the last error. Called once, last.
  std::function<void(const Status& why)> on_given_up;
};

class CoordinatorConnection {
 public:
  // Dials at once. Callbacks come from the loop only and may destroy the object.
  static std::unique_ptr<CoordinatorConnection> Start(net::Loop* loop,
                                                      CoordinatorConnectionOptions options,
                                                      CoordinatorConnectionCallbacks callbacks);
  virtual ~CoordinatorConnection() = default;

  virtual bool up() const = 0;
  // Messages are dropped unless up().
  virtual void Send(std::string_view type, json::object fields) = 0;
  virtual void SendBinary(std::string frame) = 0;
  virtual size_t queued_bytes() const = 0;
  // The address that was dialled last.
  virtual const CoordinatorAddress& address() const = 0;
};

}  // namespace shoal::rendezvous
