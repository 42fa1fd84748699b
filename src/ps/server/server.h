// One parameter server: owns the rows of its virtual shards and serves them to clients.
//
// Run by `shoal learn server` (one per process), inside a worker's process (a job without a server
// role), and in any number in one unit test. Its threads ("lanes") share no rows: each owns some of
// the shards and has its own connections, so they do not contend for locks.
// Checkpoints are driven by Admin (admin.h) and written by the servers themselves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ps/lane/server_options.h"
#include "ps/metrics.h"
#include "ps/types.h"

namespace shoal::ps {

// Lifecycle: Start, then optionally Leave, then destruction. All functions but Leave and the
// destructor are thread-safe. With replicas a server may serve the rows of several indices.
class Server {
 public:
  // Restores if asked to, listens, serves. DataLoss if checkpoints exist but none of them is whole.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options);
  // Stops at once, as a crash would: connections close, nothing is saved.
  ~Server();

  // Where clients reach it: "127.0.0.1:41233"; "inproc:NAME" when it does not listen on TCP.
  std::string address() const;
  std::string inproc_address() const;
  uint16_t port() const;
  // The checkpoint it was restored from; -1: it started empty. Without copies.
  int64_t restored_checkpoint() const;
  uint64_t instance() const;

  // Ends it while the job goes on: gives its rows to the others, lets its clients hear of it,
  // stops. Nothing is lost. Unavailable: the leader is gone, so the job ends, or no server
  // takes the rows until the deadline; it then serves what is left. FailedPrecondition: it is the
  // leader, which stays. For one thread.
  Status Leave(Duration timeout);

  // Servers whose rows this one serves now; with copies it may be several, or none for a while.
  std::vector<int> primary_of() const;
  // Servers of whose rows this one has a whole copy.
  std::vector<int> backup_of() const;
  // True if every server that it serves has a whole copy elsewhere, as far as it knows.
  bool fully_replicated() const;

  // The coordinator's word that this worker is dead: clocks, barriers and checkpoints stop waiting
  // for it. Effective on server 0. Thread-safe.
  void ReportDead(int worker);
  // Of all servers that it serves, as the next two. Thread-safe snapshot.
  Counters counters() const;
  // The keys that it is asked for most, at most n and 64 a thread. Thread-safe snapshot.
  std::vector<HotKey> hot_keys(size_t n) const;
  // All of that and more. Takes each lane's lock for as long as it has tables and clients: not for
  // every millisecond.
  ServerMetrics metrics() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shoal::ps
