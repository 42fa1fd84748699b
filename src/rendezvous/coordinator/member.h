// The connections of a coordinator and their roles. Used by coordinator.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/json.h"
#include "rendezvous/lifecycle/core_events.h"
#include "rendezvous/protocol/connection.h"

namespace shoal::rendezvous {

// A connection and its role after the hello.
struct Member {
  std::unique_ptr<Connection> connection;
  enum class Role { kUnknown, kLauncher, kController, kObserver } role = Role::kUnknown;
  // A controller of a later leader has connected: what this one still sends is ignored.
  bool superseded = false;
};

// Of several servers one leads. The controller of an earlier leader, which was frozen and does not
// know of its successor, is refused, and loses its connection when the successor's comes.
class LeaderEpoch {
 public:
  // Whether the controller `id` is admitted, by the epoch in its hello. Calls `close` for those
  // that it supersedes, or for itself.
  bool Admit(const json::object& hello, MemberId id, std::map<MemberId, Member>* members,
             const std::function<void(MemberId)>& close) {
    const int64_t epoch = GetIntOr(hello, "epoch", 0);
    if (epoch < epoch_) close(id);
    if (epoch <= epoch_) return epoch == epoch_;
    epoch_ = epoch;
    std::vector<MemberId> earlier;
    for (auto& [other, member] : *members) {
      if (other == id || member.role != Member::Role::kController) continue;
      member.superseded = true;
      earlier.push_back(other);
    }
    for (const MemberId other : earlier) close(other);
    return true;
  }

 private:
  int64_t epoch_ = 0;  // the greatest of all controllers
};

}  // namespace shoal::rendezvous
