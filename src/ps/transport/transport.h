// The transports between clients and servers: in-process, TCP, shared memory, UCX.
//
// "inproc:NAME" is a server of this process that registered with the same InProcessHub: requests
// run in the caller's thread, rows go straight between the caller's memory and the tables.
// "HOST:PORT" is TCP with the frames of docs/formats/ps-wire.md; if the server is on this host, the
// same frames go through memory that both share, and if the client is told to, over UCX. The
// interfaces below (Transport, Connection,
// ConnectionHandler) are for new transports; users of the parameter server need only InProcessHub.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "ps/types.h"
#include "ps/wire/frame.h"

namespace shoal::ps {

class ServerCore;

// Where servers of this process are found by name. Thread-safe; share one between the servers and
// clients of a job (or of a test). Names are free again when their server stops.
class InProcessHub {
 public:
  Status Register(const std::string& name, std::weak_ptr<ServerCore> server);
  void Unregister(const std::string& name);
  // Null if there is none.
  std::shared_ptr<ServerCore> Find(const std::string& name) const;

 private:
  mutable Mutex mu_;
  std::map<std::string, std::weak_ptr<ServerCore>> servers_ GUARDED_BY(mu_);
};

// The purpose of a connection: a client's requests; the log of a primary for its backup
// (docs/design/replication.md); the question of a server that starts, whether another one has its
// rows; or shards that one server gives to another (docs/design/partition.md).
enum class HelloKind : uint8_t { kClient = 0, kCopy = 1, kRecoveryLookup = 2, kMove = 3 };

// The first message of a client on a connection to one lane of a server.
struct Hello {
  int32_t client = -1;     // worker index; -1: observer
  uint64_t session = 0;    // of the Client object; never 0
  uint32_t lane = 0;       // which of the server's threads this connection is for
  uint64_t first_seq = 1;  // the lowest sequence number that may come
  uint64_t clock = 0;      // last Clock of this worker; a copy's: 1 to go on, 0 to begin
  HelloKind kind = HelloKind::kClient;
  int32_t server = -1;      // whose rows it wants, wherever they are by now; -1: does not say
  int32_t from = -1;        // the server that dials
  int64_t incarnation = 0;  // which incarnation of it
  uint64_t epoch = 0;       // a copy's: of its primary
  std::string ucx = {};     // where bytes come in over UCX (ucx_pipe.h); empty: not that way
};

// The server's answer.
struct Welcome {
  uint64_t instance = 0;             // random, of the Server object
  int32_t server = 0;                // its index
  int32_t servers = 0;               // how many it knows
  uint32_t lanes = 1;                // threads, each with connections of its own
  uint32_t shards = 0;               // virtual shards, a power of two
  uint64_t ownership = 0;            // version of the shard → server table
  int64_t restored_checkpoint = -1;  // -1: it started empty
  bool lost_rows = false;            // likewise, and servers that live on have tables
  // Last sequence number applied for this session; of a copy: last position that it has; to a
  // claim: 1 if there is a copy here.
  uint64_t last_seq = 0;
  std::string ucx = {};  // as a hello's, if that had one
};

// The rows of one request to one lane, in the caller's memory.
struct RowChunk {
  const Key* keys = nullptr;       // the whole request's
  const uint32_t* pick = nullptr;  // which of them, n; null: first, first + 1, …
  size_t first = 0;
  size_t n = 0;
  uint32_t dim = 0;
  ConstRows deltas;  // indexed like keys; empty for a pull
  Rows out;          // likewise; empty for a push
  // The encoded deltas where they are not f32: n rows of WireRowBytes each.
  const char* coded = nullptr;
  std::string_view argument;  // a call's
  // A call's argument and the keys as they travel, if they have been written already.
  std::string_view front;
  size_t At(size_t i) const { return pick != nullptr ? pick[i] : first + i; }
};

// A frame to send: `body` for control frames, `rows` for row operations.
struct Outgoing {
  FrameHeader head;
  std::string_view body;
  const RowChunk* rows = nullptr;
};

// Gets what a connection receives, from one thread at a time.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // `body` is valid during the call. For an answer with rows, `body` holds them one after the
  // other, or is empty when the connection has already put them where RowChunk::out said.
  virtual void OnFrame(const FrameHeader& head, std::string_view body) = 0;
  // A frame that Connection::Takes refused may be sent now.
  virtual void OnRoom() {}
  // The last call.
  virtual void OnClosed(const Status& why) = 0;
};

// The result of one poll.
enum class PollResult : uint8_t {
  kNothing,  // or another thread is at it
  kSome,
  kNever,  // closed, or of a kind that delivers by itself
};

// One authenticated connection of a client to one lane of a server. Send keeps order; calls to Send
// must be serialised by the caller, and no lock that OnFrame takes may be held over FlushReplies.
class Connection {
 public:
  virtual ~Connection() = default;
  // Begins delivery to `handler`, which must live until Close returned.
  virtual void Start(ConnectionHandler* handler) = 0;
  // The memory behind out.rows must stay valid until the answer. Never blocks on the network.
  virtual void Send(const Outgoing& out) = 0;
  // True where bytes cost more than the work of coding keys in fewer.
  virtual bool SavesBytes() const { return false; }
  // Delivers answers that Send produced in this thread (in-process); nothing elsewhere.
  virtual void FlushReplies() = 0;
  // Whether a frame of this many bytes would go out now rather than wait in a queue. A hint.
  virtual bool Takes(size_t /*bytes*/) { return true; }
  // For threads that wait: handles in this thread what has come, so that no other one need be
  // woken. A thread that polls and then goes to sleep calls StopPolling before; otherwise it is
  // milliseconds until the connection's own thread looks again. Calls handlers: hold no lock of
  // theirs.
  virtual PollResult Poll() { return PollResult::kNever; }
  virtual void StopPolling() {}
  // No call of the handler runs or comes after it, unless called from within one. Idempotent.
  virtual void Close() = 0;
};

struct OpenedConnection {
  std::unique_ptr<Connection> connection;
  Welcome welcome;
};

// Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // Connects, authenticates both ways and sends the hello. Unavailable: no server there (yet);
  // Unauthenticated: wrong token; FailedPrecondition: the server refuses this client.
  virtual Result<OpenedConnection> Dial(const std::string& address, const Hello& hello,
                                        Duration timeout) = 0;
};

// Over TCP, or over UCX if `ucx` is set (FailedPrecondition where it is not there), or else shared
// memory where the server is on this host and `shared_memory` is set; with one thread that receives
// for all connections that no other thread polls.
std::unique_ptr<Transport> MakeTcpTransport(std::string token, bool shared_memory,
                                            bool ucx = false);
// Within the process.
std::unique_ptr<Transport> MakeInProcessTransport(std::shared_ptr<InProcessHub> hub,
                                                  std::string token);

}  // namespace shoal::ps
