// A server's connection to another server: requests that are answered in order.
//
// Used to move shards (shard_mover.cc) and by servers that start again or leave (server_leave.cc,
// replica_host.cc). One thread sends and waits; answers come from the transport's thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ps/lane/server_options.h"
#include "ps/shard_map.h"
#include "ps/transport/transport.h"

namespace shoal::ps {

class ShardConnection final : public ConnectionHandler {
 public:
  explicit ShardConnection(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  ~ShardConnection() override { connection_->Close(); }
  void Start() { connection_->Start(this); }

  // Under no lane's lock. Returns the request's number.
  uint64_t Send(FrameType type, std::string_view body);
  // Until all up to this number is answered. Unavailable: the connection is gone; else the other
  // one's first error.
  Status Await(uint64_t id, TimePoint deadline);
  // One request and its answer.
  Result<std::string> SendRequest(FrameType type, std::string_view body, TimePoint deadline);

  // ConnectionHandler. OnClosed also ends the waits of a connection that is open.
  void OnFrame(const FrameHeader& head, std::string_view body) override;
  void OnClosed(const Status& why) override;

 private:
  const std::unique_ptr<Connection> connection_;
  uint64_t sent_ = 0;
  Mutex mu_;
  CondVar answered_cv_;
  uint64_t answered_ GUARDED_BY(mu_) = 0;  // with the rest
  std::string reply_;                      // the last
  Status error_;                           // the first
};

// Where other servers are, and the way to them.
class ShardDialer {
 public:
  explicit ShardDialer(const ServerOptions& options);

  // A lane of the server that serves these rows, wherever it is by now.
  Result<std::shared_ptr<ShardConnection>> Dial(const Hello& hello, Duration timeout);
  Result<std::shared_ptr<ShardConnection>> DialAt(const std::string& address, const Hello& hello,
                                                  Duration timeout, Welcome* welcome = nullptr);
  // Every wait for an answer over one of its connections, and every dial, ends with Unavailable
  // from now on. Thread-safe.
  void Stop();
  const ServerOptions& options() const { return options_; }

 private:
  const ServerOptions options_;
  Mutex mu_;
  bool stopped_ GUARDED_BY(mu_) = false;
  std::vector<std::weak_ptr<ShardConnection>> connections_ GUARDED_BY(mu_);
  const std::unique_ptr<Transport> tcp_;
  std::unique_ptr<Transport> inproc_;
};

// The greeting with which a server asks for a lane of the one that serves these rows.
Hello MakeMoveHello(const ServerOptions& options, int server, uint32_t lane);

// The servers that Members names, except this one.
std::set<int> OtherServers(const ServerOptions& options);

// Sends the owners of all shards to the servers `whom`, and removes from it those that have
// acknowledged and those that Members no longer names. `timeout`: for each of them.
void SendShardMap(ShardDialer* dialer, const ShardMap& map, Duration timeout, std::set<int>* whom);

// The number of servers that the job began with, from any server that knows it; the present number
// if this is the first incarnation of a server, or no other can be reached. All but the leader wait
// for the answer for a while: a server that joined later must not take rows for its own from the
// beginning.
int LookUpInitialServers(const ServerOptions& options);

// Tells all others that this incarnation of the server is over: what they have copies of is theirs.
void AnnounceShutdown(const ServerOptions& options);

// The shard map that a server which starts again needs before it restores: asks all others that
// can be reached within `patience`.
Result<ShardMap> LearnShards(ShardDialer* dialer, uint32_t shards, Duration patience);

}  // namespace shoal::ps
