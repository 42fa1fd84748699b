// The options of a server, which Server::Start and the services of a server read.
//
// Plain data; constant once the server runs.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "ps/members.h"
#include "ps/storage/row_function.h"
#include "ps/transport/transport.h"
#include "ps/types.h"

namespace shoal::ps {

struct ServerOptions {
  int index = 0;    // of this server, [0, servers)
  int servers = 1;  // in the job, as Members names them when it starts
  int initial_servers =
      0;  // with how many the job began: these had all rows at first. The same on all
          // servers; 0: asks the others in a later incarnation (`incarnation`), else `servers`
  // The leader's, in a later incarnation, when Members names no other server: it owns all shards,
  // with this epoch, which exceeds all earlier ones; 0: it owns what the others tell it.
  uint32_t takeover_epoch = 0;
  // The leader's: how often it looks whether rows are to move, so that all servers have as much;
  // 0: never. Needs `members`. See docs/design/partition.md.
  Duration balance_every{0};
  int workers = 0;  // how many clients clocks and barriers wait for before all have joined; those
                    // with a higher index count once they have joined
  std::string token;
  // TCP: listens on host:port (0: any free one; see address()). `listen_host` empty: no TCP.
  std::string listen_host = "127.0.0.1";
  uint16_t port = 0;
  bool shared_memory = true;  // instead of TCP, with clients of this host that ask for it
  bool ucx = false;  // also over UCX, with clients that ask for it; Start fails if it is not there.
                     // Only among hosts that are trusted: UCX checks nothing (docs/adr/0092)
  size_t ring_bytes = 2u << 20;  // of it, a direction and connection: a power of two from 256 KB to
                                 // 64 MB; best if more than two processors' own caches together
  Duration poll_for = std::chrono::microseconds(100);  // a thread polls its busy clients at most so
                                                       // long before it sleeps
  // In-process: registers as "inproc:" + name with the hub. Null: none.
  std::shared_ptr<InProcessHub> hub;
  std::string inproc_name;

  int threads = 1;        // lanes
  uint32_t shards = 256;  // virtual shards of the job, a power of two; the same on all servers
  std::shared_ptr<const Functions> functions;  // that clients may call; the same on all servers
  std::filesystem::path checkpoint_dir;  // empty: no checkpoints. Shared by all servers of the job
  int keep_checkpoints = 2;    // and what they stand on; see Retention in checkpoint_dir.h
  int checkpoint_deltas = 15;  // at most so many checkpoints after a whole one hold only the rows
                               // that changed since the one before them
  // Server 0 aborts a checkpoint that takes longer, for example because its driver has died.
  Duration checkpoint_timeout = std::chrono::minutes(10);
  // 2: every row is on two servers, and no acknowledged push is lost when one of them dies
  // (docs/design/replication.md). Needs `servers` >= 2 and `members`; the same on all servers.
  int replicas = 1;
  Members* members = nullptr;  // of the job; not owned, must outlive the server
  int64_t incarnation = 0;     // of this index: grows with every start, for a start proves that the
                               // earlier lives are over
  bool restore = true;  // from the newest whole checkpoint of checkpoint_dir, if there is one
  Duration client_grace = std::chrono::seconds(10);  // a worker that lost its connections for this
                                                     // long counts as dead
  Duration handshake_timeout = std::chrono::seconds(5);  // for a new connection to prove the token
  uint64_t max_blob_bytes = 4ull << 30;                  // one blob
  uint64_t max_blobs_bytes = 16ull << 30;                // all of this server
  size_t max_queue_bytes = 8u << 20;      // unread answers of one connection; beyond it
                                          // nothing more is read from it
  const Clock* clock = RealClock::Get();  // not owned
  // Asked while Start waits for server 0 to say which checkpoint it restored; true: Start ends with
  // Cancelled. May be null.
  std::function<bool()> stopping;
};

}  // namespace shoal::ps
