// The controller's side of the rendezvous: connects to a job's coordinator, proves the token,
// follows events and log lines, and gives commands. Also used by `shoal stop` and `shoal logs -f`.
//
//   auto client = CoordinatorClient::Connect(&loop, {.job_dir = dir}, {.on_event = …, .on_log =
//   …}); …  client->Drain("Ctrl-C");  …  on kVerdict: store it, then client->AckVerdict();
//
// Everything here, callbacks included, belongs to the loop's thread; other threads use Loop::Post.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "net/event_loop.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/protocol/coordinator_connection.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::rendezvous {

struct CoordinatorClientOptions {
  // The job's directory: the token is read from DIR/token, and, unless `find` is set, the address
  // from DIR/coordinator.json again on every dial, so a coordinator that comes back elsewhere is
  // found.
  std::string job_dir;
  // Replaces DIR/coordinator.json for engines whose coordinator is elsewhere (Engine::Dial). Called
  // on the loop's thread before every dial; must not block for long; an error is retried.
  std::function<Result<CoordinatorAddress>()> find;
  std::string token;  // instead of DIR/token

  // Only events with a greater seq are delivered: first from the journal, then live.
  int64_t after_seq = 0;
  // Log lines: from the given offset of each attempt (0 for attempts not named); false: none.
  bool logs = true;
  std::map<LogKey, int64_t> log_offsets;

  // Not empty: no-shared-filesystem mode. This controller mirrors journal and logs in this
  // directory of its own (client/journal_mirror.h); `after_seq`, `logs` and `log_offsets` follow
  // from it.
  std::string mirror_dir;

  // True: this is the controller, whose absence for 5 s stops a job with on_controller_loss: stop.
  // False: an observer (`shoal stop`, `shoal logs`).
  bool controller = true;

  // Epoch of the lease under which this controller leads (controller/store/lease.h); 0: none. A
  // coordinator that has seen a greater one refuses it.
  int64_t epoch = 0;

  // A lost or not yet possible connection is dialled again (after 1 ms, backing off to 250 ms) for
  // this long, then on_closed. 0: one attempt.
  Duration give_up_after = std::chrono::seconds(30);
  // Whether the coordinator's process lives, see CoordinatorConnectionOptions. Optional.
  std::function<bool()> lives;
};

struct CoordinatorClientCallbacks {
  // Authenticated (again). Optional.
  std::function<void()> on_connected;
  // In order of seq; each durable event once, also over reconnections.
  std::function<void(const JobEvent&)> on_event;
  // A run of whole lines as the task printed them, line feeds included (a line longer than 64 KiB
  // comes in pieces, and the last line of an attempt may lack its line feed). Offsets of one key
  // are contiguous and each byte comes once. Optional.
  std::function<void(const LogKey&, int64_t offset, std::string_view bytes)> on_log;
  // Given up, refused (Unauthenticated: wrong token; Aborted: a controller of a later epoch has
  // connected), or the coordinator ended after the verdict
  // was acknowledged (OK). Called once, last.
  std::function<void(const Status&)> on_closed;
};

class CoordinatorClient {
 public:
  static std::unique_ptr<CoordinatorClient> Connect(net::Loop* loop,
                                                    CoordinatorClientOptions options,
                                                    CoordinatorClientCallbacks callbacks);
  // Closes the connection without further callbacks. May be called from within a callback.
  virtual ~CoordinatorClient() = default;

  virtual bool connected() const = 0;

  // Commands are kept while disconnected and sent on the next connection. Drain asks the tasks that
  // follow no role to finish (SIGTERM); followers are stopped after them as always. The job ends
  // `cancelled`, however well its tasks then end.
  virtual void Drain(const std::string& reason) = 0;
  // Stops everything: SIGTERM to all, SIGKILL after limits.stop_grace; the job ends `cancelled`.
  virtual void Stop(const std::string& reason) = 0;
  // SIGKILL to all now; the job ends `cancelled`.
  virtual void Kill(const std::string& reason) = 0;
  // Lets all tasks save and end, to be started again when the job is resumed: the verdict is
  // kSuspended. Refused by a note (RequestRefusal::kSuspend).
  virtual void Suspend(const std::string& reason) = 0;
  // Sets the size of an elastic role. Answered by the event kScaled, or by a note that gives
  // the reason (RequestRefusal::kScale).
  virtual void Scale(const std::string& role, int replicas, const std::string& reason) = 0;
  // The engine reports that this incarnation of a launcher is dead (TaskPhase::kLost, or kEnded
  // with a code other than 0), so that its heartbeats need not time out. Idempotent.
  virtual void ReportLost(const std::string& role, int index, int incarnation,
                          const std::string& reason) = 0;
  // The engine will not make this task (TaskPhase::kRefused, restarts exhausted): the job fails
  // with this reason.
  virtual void ReportRefused(const std::string& role, int index, const std::string& reason) = 0;
  // The engine has paused all of the job's processes, or resumed them: while they are paused no
  // deadline comes nearer. Ends with the connection, and with any command.
  virtual void Hold(bool held, const std::string& reason) = 0;
  // The verdict is stored: the coordinator need not wait any more. It ends, and on_closed(OK)
  // follows.
  virtual void AckVerdict() = 0;
};

}  // namespace shoal::rendezvous
