// The connections of a coordinator and their roles, by MemberId: a connection may vanish in any
// call, its number is never reused. Used by coordinator.cc and the parts that answer launchers.
//
// Belongs to the loop's thread. Connections live until Remove or the table's end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

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

class MemberTable {
 public:
  // The number of the next connection; Add is to follow.
  MemberId NextId() { return next_++; }
  void Add(MemberId id, std::unique_ptr<Connection> connection);
  // Null if it is gone. Valid until Remove.
  Member* Find(MemberId id);
  Connection* ConnectionOf(MemberId id);
  // Takes it out of the table; none if it is not there.
  std::optional<Member> Remove(MemberId id);
  bool empty() const { return members_.empty(); }

  // Of several servers one leads. Whether the controller `id` is admitted, by the epoch in its
  // hello: the controller of an earlier leader, which was frozen and does not know of its
  // successor, is closed, and is superseded and closed when the successor's comes.
  bool AdmitController(MemberId id, const json::object& hello);

  // Closes one connection, with a warning in the log, or all of them; they vanish later.
  void Close(MemberId id, const std::string& why);
  void CloseAll(const std::string& why);
  // Sends a complete message to all for which `to` holds.
  void SendToAll(const std::shared_ptr<const std::string>& message, bool text,
                 const std::function<bool(MemberId, const Member&)>& to);

 private:
  std::map<MemberId, Member> members_;
  MemberId next_ = 1;
  int64_t leader_epoch_ = 0;  // the greatest of all controllers
};

}  // namespace shoal::rendezvous
