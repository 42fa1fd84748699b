// A worker's connection to the parameter servers: asynchronous, batched pulls and pushes of rows,
// clocks, barriers, blobs, and the worker's part in consistent checkpoints.
//
// Trainers (learn/) make one Client a worker, whatever the number of training threads. It finds the
// servers through Members, keeps connections to all of them, reconnects by itself when one dies
// (docs/design/push-pull.md), and answers checkpoint markers by itself (docs/design/checkpoint.md).
//
// Memory: keys, deltas and out rows of a request stay the caller's; they must stay valid and, for
// keys and deltas, unchanged until the request is done (Wait returned OK or another error than
// DeadlineExceeded, its callback ran, or the Client is gone). `out` must not overlap `deltas`.
// Threads: all methods may be called from any thread. Requests of one thread reach a server in the
// order in which they were issued.
// Errors: every wait has a timeout; an error names the server that is to blame. Unavailable: a
// server was away for longer than `reconnect_timeout`; from then on every call that needs it fails.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ps/members.h"
#include "ps/transport/transport.h"
#include "ps/types.h"

namespace shoal::ps {

class ClientCore;

// The index of a client that is no worker: it may pull, push and read blobs, but takes no part in
// clocks, barriers and checkpoints.
inline constexpr int kObserver = -1;

struct ClientOptions {
  int index = 0;            // the worker's; a newcomer with the same index replaces the old one
  std::string token;        // the job's secret
  Consistency consistency;  // what Clock waits for
  std::shared_ptr<InProcessHub> hub;  // for servers whose address is "inproc:NAME"; may be null
  bool shared_memory = true;          // instead of TCP, with servers of this host
  bool ucx = false;  // over UCX instead of both; the servers must be willing (ServerOptions::ucx)
  // A thread that waits for answers polls for this long before it sleeps: answers arrive sooner, at
  // the cost of a processor.
  Duration poll_for = std::chrono::microseconds(100);
  Duration connect_timeout = std::chrono::seconds(30);    // to reach all servers at first
  Duration reconnect_timeout = std::chrono::seconds(30);  // for one that went away
  size_t window_bytes = 1u << 20;  // unanswered row values to and from one server; beyond it a
                                   // call blocks: slow servers push back, memory is bounded
  // Called from a thread of the library after a server came back as another instance, with its
  // index and the checkpoint it was restored from (-1: it came back empty). Must not block.
  std::function<void(int server, int64_t checkpoint)> on_server_restart;
  // A server that came back empty has lost the rows that were on it. True: from then on every call
  // of this client fails with DataLoss, so that training does not go on with what is left of a
  // table. False: the caller makes good for them, or only reads.
  bool fail_on_data_loss = false;
  // Asked ten times a second by every thread that waits for servers, but for Wait's; true: its call
  // ends with Cancelled. May be null.
  std::function<bool()> interrupted;
};

// One asynchronous request. Wait for it exactly once, unless it was issued with a callback.
struct Ticket {
  uint32_t slot = 0;
  uint32_t generation = 0;  // 0: none
};

// Runs once when a request is done, in a thread of the library or in the caller's own; must not
// block and must not issue requests.
using DoneCallback = std::function<void(const Status&)>;

class Client {
 public:
  // Connects to all servers of `members` (not owned; must outlive the client), retrying those that
  // are not there yet until connect_timeout.
  static Result<std::unique_ptr<Client>> Connect(ClientOptions options, Members* members);
  // Closes without Leave: to the servers the worker is lost, and counts as dead after their grace.
  ~Client();

  // Creates the table on all servers, or finds it there with the same spec; AlreadyExists if the
  // spec differs. After a server's restart the client creates it again by itself.
  Result<TableRef> CreateTable(const TableSpec& spec, Duration timeout = std::chrono::seconds(60));

  // The row operations. keys: n in any order; repeated keys of a push are all applied, in order.
  //   Push      the server applies deltas[i] to row keys[i] with the table's optimizer
  //   Pull      out[i] = row keys[i]; a sparse row without a push has its initial value
  //   PushPull  applies deltas[i], then out[i] = the new row: one round trip
  // Return as soon as the request is on its way (or block while the window is full; at most
  // reconnect_timeout). InvalidArgument for keys beyond a dense table. No allocation once warm.
  Result<Ticket> Pull(const TableRef& table, std::span<const Key> keys, Rows out,
                      DoneCallback done = nullptr);
  Result<Ticket> Push(const TableRef& table, std::span<const Key> keys, ConstRows deltas,
                      DoneCallback done = nullptr);
  Result<Ticket> PushPull(const TableRef& table, std::span<const Key> keys, ConstRows deltas,
                          Rows out, DoneCallback done = nullptr);
  // Where table.wire.push is not kF32, rounding loses something of every delta. These overwrite
  // deltas, before they return, with exactly what the servers will add (of parts that an error kept
  // back: with nothing), so that the caller can keep the difference and push it later. Memory as
  // above.
  Result<Ticket> Push(const TableRef& table, std::span<const Key> keys, Rows deltas,
                      DoneCallback done = nullptr);
  Result<Ticket> PushPull(const TableRef& table, std::span<const Key> keys, Rows deltas, Rows out,
                          DoneCallback done = nullptr);

  // Runs the server function of this name (ServerOptions::functions) over the rows `keys`, with
  // `argument` (at most kMaxFunctionArgument bytes, copied) and, where set, rows.deltas beside
  // them; rows.out gets the rows as they are afterwards. Like a push it is applied once, whatever
  // happens to connections. NotFound, from Wait, if a server does not have the function.
  struct CallRows {
    ConstRows deltas;
    Rows out;
  };
  Result<Ticket> Call(const TableRef& table, std::string_view function, std::span<const Key> keys,
                      std::string_view argument, const CallRows& rows, DoneCallback done = nullptr);

  // Waits until the request is done and forgets the ticket. DeadlineExceeded names the servers
  // that did not answer; the request then goes on, and may be waited for again.
  Status Wait(Ticket ticket, Duration timeout = std::chrono::seconds(60));
  // True when Wait would not block.
  bool Done(Ticket ticket) const;
  // Waits until all row operations issued so far (by all threads) are answered.
  Status Flush(Duration timeout = std::chrono::seconds(60));

  // Rows [first, first + count) of a dense table, pipelined in bounded pieces. Blocks; after a
  // timeout for up to reconnect_timeout more, until nothing can be written to `out` any longer, and
  // a server that has not answered by then is given up.
  Status PullRange(const TableRef& table, uint64_t first, uint64_t count, Rows out,
                   Duration timeout = std::chrono::seconds(600));

  // "I have finished my n-th round" (n grows by the caller). First flushes, so that what this
  // worker pushed is visible to every worker that passes a later clock; then waits while n is more
  // than the staleness ahead of the slowest live worker (BSP: 0; ASP: never waits, only tells).
  Status Clock(uint64_t n, Duration timeout = std::chrono::seconds(600));
  // Returns when all live workers have entered the barrier of this name; names may be used again.
  // After DeadlineExceeded this worker has not entered: the others wait for it.
  Status Barrier(std::string_view name, Duration timeout = std::chrono::seconds(600));

  // Named byte strings on the servers (at most 1 GiB by default, see ServerOptions), in pieces of
  // bounded frames; a reader sees the old or the new whole. Part of checkpoints.
  Status PutBlob(std::string_view name, std::string_view bytes,
                 Duration timeout = std::chrono::seconds(600));
  // NotFound if there is none.
  Result<std::string> GetBlob(std::string_view name, Duration timeout = std::chrono::seconds(600));
  // Names that begin with `prefix`, sorted.
  Result<std::vector<std::string>> ListBlobs(std::string_view prefix,
                                             Duration timeout = std::chrono::seconds(60));
  // OK if there is none.
  Status DeleteBlob(std::string_view name, Duration timeout = std::chrono::seconds(60));

  // An opaque state of this worker ("how far I am") that goes into every checkpoint together with
  // exactly the pushes issued before it: a checkpoint holds a push if and only if it holds the
  // progress set after it, provided both were issued within one IssueScope. At most
  // kMaxProgressBytes. Also sent to server 0, where GetProgress finds it.
  Status SetProgress(std::string bytes);
  // The latest progress that the servers know of this worker: of its present or earlier
  // incarnation, or of the checkpoint the servers were restored from. NotFound if there is none.
  Result<std::string> GetProgress(int worker, Duration timeout = std::chrono::seconds(60));

  // While a scope is open no checkpoint marker is put between the requests of this thread. Keep it
  // short: issue pushes, SetProgress, close; do not wait for another worker in it.
  class IssueScope {
   public:
    explicit IssueScope(Client& client);
    ~IssueScope();
    IssueScope(const IssueScope&) = delete;
    IssueScope& operator=(const IssueScope&) = delete;

   private:
    ClientCore* core_;
  };

  // Flushes and says good-bye: clocks, barriers and checkpoints no longer wait for this worker. Its
  // progress stays.
  Status Leave(Duration timeout = std::chrono::seconds(60));

  // How often a server came back as another instance (each counted once).
  int64_t server_restarts() const;
  // Which server has a row now, as far as this client knows: where its next push of it goes first.
  int ServerOf(const TableRef& table, Key key) const;
  // The checkpoint that the servers were restored from when this client first connected; -1: none.
  int64_t restored_checkpoint() const;
  Counters counters() const;

 private:
  friend class Admin;
  explicit Client(std::shared_ptr<ClientCore> core);
  std::shared_ptr<ClientCore> core_;
};

}  // namespace shoal::ps
