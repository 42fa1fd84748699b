// The thread of a client that dials again when a connection to a server is lost.
//
// Owned by ClientCore, which outlives it. Every second it also compares the servers' addresses with
// those that Members names: a server that is named elsewhere has been started again, and its old
// host may be gone without closing the connection.
#pragma once

#include <map>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace shoal::ps {

class Channel;
class ClientCore;

// Thread-safe.
class Reconnector {
 public:
  explicit Reconnector(ClientCore* core) : core_(core) {}
  ~Reconnector() { Stop(); }

  void Start();
  // Ends the thread; wakes WaitForStop. Idempotent.
  void Stop();
  // The channel's connection is gone: dials again, until reconnect_timeout has passed.
  void OnLost(Channel* channel);
  // Waits for at most `time`. True: the client is destroyed, or its program was interrupted.
  bool WaitForStop(Duration time);

 private:
  void Run();
  void DisconnectOldAddresses();
  // True: nothing more is to be done for this channel.
  bool Reconnect(Channel* channel, TimePoint lost_at);

  ClientCore* const core_;
  Mutex mu_;
  CondVar lost_cv_;
  std::map<Channel*, TimePoint> lost_ GUARDED_BY(mu_);  // since when
  bool stop_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace shoal::ps
