// A client's markers of a checkpoint: one to every lane, and to the leader the notice that
// everything sent before them has been answered (docs/design/checkpoint.md, "Exactness").
//
// Owned by ClientCore, which outlives it. Thread-safe. Lock order: mu_ before the channels' locks,
// settling_mu_ last.
#pragma once

#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "ps/client/channel.h"

namespace shoal::ps {

class ClientCore;

class MarkerSender {
 public:
  explicit MarkerSender(ClientCore* core) : core_(core) {}

  // Sends the markers of a checkpoint to all channels, unless they have gone out already or
  // redirected requests are still to be sent (the redirector then asks again). While the gate is
  // empty.
  void SendToAll(int64_t checkpoint);
  // Sends the marker to one channel, with this worker's progress.
  void Send(Channel* channel, int64_t checkpoint, const std::string& progress);
  // The checkpoint whose markers went out last; -1: none.
  int64_t last();

  // Events of channels: see Channel::Hooks.
  void OnAnswered(int64_t checkpoint, bool failed);
  void OnMoved(Redirect redirect);

 private:
  // The checkpoint whose markers go out or are unanswered.
  struct Settling {
    int64_t checkpoint = -1;
    size_t markers = 0;  // unanswered ones, and 1 until all have gone out
    bool late = false;   // a request that was sent before a marker has been refused
  };
  void SetSettling(const Settling& now);

  ClientCore* const core_;
  Mutex mu_;
  int64_t last_ GUARDED_BY(mu_) = -1;
  Mutex settling_mu_;
  Settling settling_ GUARDED_BY(settling_mu_);
};

}  // namespace shoal::ps
