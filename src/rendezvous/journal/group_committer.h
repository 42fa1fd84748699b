// Group commit: syncs files on a thread of its own, so that a slow disk delays neither heartbeats
// nor stops. Used by coordinator/durability_gate.cc.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "net/event_loop.h"

namespace shoal::rendezvous {

class GroupCommitter {
 public:
  // The thread starts with the first Sync.
  static std::unique_ptr<GroupCommitter> Make(net::Loop* loop);
  // Waits for a sync under way, whose `done` is not called any more.
  virtual ~GroupCommitter() = default;

  // Calls fdatasync on each descriptor, then `done` on the loop's thread with the first error. The
  // descriptors must stay open until then. One sync at a time: the previous `done` must have been
  // called.
  virtual void Sync(std::vector<int> fds, std::function<void(Status)> done) = 0;
  // Number of syncs requested so far.
  virtual int64_t syncs() const = 0;
};

}  // namespace shoal::rendezvous
