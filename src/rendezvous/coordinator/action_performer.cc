#include "rendezvous/coordinator/action_performer.h"

#include <utility>

#include "base/file.h"
#include "job/execution/job_dir.h"

namespace shoal::rendezvous {

ActionPerformer::ActionPerformer(net::Loop* loop, const CoordinatorCore* core, MemberTable* members,
                                 JobLocation location, ActionPerformerCallbacks calls)
    : loop_(loop),
      core_(core),
      members_(members),
      location_(std::move(location)),
      calls_(std::move(calls)) {}

ActionPerformer::~ActionPerformer() { *alive_ = false; }

void ActionPerformer::Perform(const Action& action) {
  Connection* const connection =
      action.member != 0 ? members_->ConnectionOf(action.member) : nullptr;
  switch (action.kind) {
    case Action::Kind::kRecord:
      return;
    case Action::Kind::kNote:
      return calls_.note(action.text);
    case Action::Kind::kWriteVerdict:
      return WriteVerdict();
    case Action::Kind::kExit:
      return calls_.exit();
    case Action::Kind::kDescribe:
      return SendDescription(action, connection);
    case Action::Kind::kStart:
      if (connection != nullptr) StartProgram(action, connection);
      return;
    default:
      if (connection != nullptr) SendLauncherCommand(*core_, action, location_.id, connection);
  }
}

void ActionPerformer::SendDescription(const Action& action, Connection* connection) {
  if (action.member == 0) return broadcast_throttle_.Request(core_->task_count());
  if (connection != nullptr) connection->SendShared(description_cache_.frame(), false);
}

void ActionPerformer::BroadcastDescription() {
  members_->SendToAll(description_cache_.frame(), false,
                      [this](MemberId id, const Member&) { return core_->TaskOf(id).has_value(); });
}

void ActionPerformer::StartProgram(const Action& action, Connection* connection) {
  auto start = MakeStartMessage(*core_, description_cache_.cluster(), action.task, action.attempt,
                                location_);
  if (!start.ok()) {
    loop_->Post([this, alive = alive_, task = action.task, why = start.status().message()] {
      if (*alive) calls_.refused({core_->role_of(task).name, core_->tasks().index_of(task), why});
    });
    return;
  }
  start->log_directory_id = log_directory_id_;
  connection->SendShared(description_cache_.frame(), false);
  connection->Send("start", ToJson(*start));
}

void ActionPerformer::WriteVerdict() {
  const std::string text = ToPrettyText(VerdictToJson(*core_->verdict())) + "\n";
  // Not synced: the journal, which is synced, has the verdict too.
  const Status status =
      WriteFileAtomically(job::JobDir(location_.dir).verdict(), text, 0600, false);
  if (!status.ok()) calls_.note("the verdict is in the journal alone: " + status.message());
}

}  // namespace shoal::rendezvous
