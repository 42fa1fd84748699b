// Group commit: files are synced on a thread of its own, so that a slow disk holds up neither
// heartbeats nor the stop of a follower. Used by gate.cc.
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
  // Waits for a sync under way; its `done` is not called any more.
  virtual ~GroupCommitter() = default;

  // fdatasync of each; then `done` on the loop's thread, with the first error. The descriptors stay
  // open until then. One at a time: not before the last is done.
  virtual void Sync(std::vector<int> fds, std::function<void(Status)> done) = 0;
  // How many were asked for so far.
  virtual int64_t syncs() const = 0;
};

}  // namespace shoal::rendezvous
