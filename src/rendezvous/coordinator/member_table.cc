#include "rendezvous/coordinator/member_table.h"

#include <utility>
#include <vector>

#include "base/log.h"

namespace shoal::rendezvous {

void MemberTable::Add(MemberId id, std::unique_ptr<Connection> connection) {
  members_[id].connection = std::move(connection);
}

Member* MemberTable::Find(MemberId id) {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

Connection* MemberTable::ConnectionOf(MemberId id) {
  const Member* const member = Find(id);
  return member == nullptr ? nullptr : member->connection.get();
}

std::optional<Member> MemberTable::Remove(MemberId id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return std::nullopt;
  std::optional<Member> member = std::move(found->second);
  members_.erase(found);
  return member;
}

bool MemberTable::AdmitController(MemberId id, const json::object& hello) {
  const auto supersede = [this](MemberId other) {
    if (Connection* const connection = ConnectionOf(other)) connection->Send("superseded", {});
    Close(other, "another server leads");
  };
  const int64_t epoch = GetIntOr(hello, "epoch", 0);
  if (epoch < leader_epoch_) supersede(id);
  if (epoch <= leader_epoch_) return epoch == leader_epoch_;
  leader_epoch_ = epoch;
  std::vector<MemberId> earlier;
  for (auto& [other, member] : members_) {
    if (other == id || member.role != Member::Role::kController) continue;
    member.superseded = true;
    earlier.push_back(other);
  }
  for (const MemberId other : earlier) supersede(other);
  return true;
}

void MemberTable::Close(MemberId id, const std::string& why) {
  Connection* const connection = ConnectionOf(id);
  if (connection == nullptr) return;
  LogWarning("closing the connection from {}: {}", connection->address(), why);
  connection->Close(why);
}

void MemberTable::CloseAll(const std::string& why) {
  for (auto& [id, member] : members_) member.connection->Close(why);
}

void MemberTable::SendToAll(const std::shared_ptr<const std::string>& message, bool text,
                            const std::function<bool(MemberId, const Member&)>& to) {
  for (auto& [id, member] : members_) {
    if (to(id, member)) member.connection->SendShared(message, text);
  }
}

}  // namespace shoal::rendezvous
