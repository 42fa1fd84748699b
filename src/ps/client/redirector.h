// Sends requests again that came to a lane when some of their rows had moved to another one, in an
// order in which none overtakes another (docs/design/partition.md).
//
// Owned by ClientCore. Receiving threads add the refused requests; a thread of its own, made when
// first needed, asks servers for the owners of shards and sends. Meanwhile the gate holds new
// requests back, for about a round trip.
#pragma once

#include <deque>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "ps/client/channel.h"

namespace shoal::ps {

class ClientCore;

// Thread-safe.
class Redirector {
 public:
  explicit Redirector(ClientCore* core) : core_(core) {}
  ~Redirector() { Stop(); }

  // The client is connected to all servers: handles what was added meanwhile, and all that comes.
  void Open();
  // Any thread; never blocks.
  void AddRedirect(Redirect redirect);
  // This server knows of moves that this client may not know of.
  void OnShardsMoved(int server);
  // A server that this client needs nothing of may have left: closes unneeded channels soon.
  void RequestCleanup();
  // True: something is on its way that was issued before a marker would go out. The marker is asked
  // for again when all of it has been sent.
  bool DefersMarker(int64_t checkpoint);
  // Waits until nothing is left. False: the deadline passed.
  bool AwaitAll(TimePoint deadline);
  // The number of redirects added so far.
  uint64_t received();
  // Fails what is not sent yet. After the channels have failed, so that nothing holds its thread.
  void Stop();

 private:
  void Run();
  void Begin();
  void SendRedirects();
  // Until everything that has been sent is answered, or refused.
  void AwaitChannels();
  bool LearnShardOwners(std::set<int> servers);
  Status Send(const Redirect& redirect);
  Status SendChunk(const Redirect& redirect, FrameHeader head, size_t channel,
                   const std::vector<uint32_t>& rows);

  ClientCore* const core_;
  Mutex mu_;
  CondVar wake_;
  CondVar done_;
  std::deque<Redirect> redirects_ GUARDED_BY(mu_);  // with the rest
  std::set<int> servers_to_ask_;
  size_t unsent_ = 0;  // came, and are not sent yet
  uint64_t received_ = 0;
  int64_t marker_ = -1;  // that waits
  bool cleanup_ = false;
  bool ready_ = false;
  bool stop_ = false;
  std::thread thread_;
  Duration backoff_{};  // the thread's
};

}  // namespace shoal::ps
