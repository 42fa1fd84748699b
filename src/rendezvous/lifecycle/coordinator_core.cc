// Members: joining, leases, losses, and what their programs report.
#include "rendezvous/lifecycle/coordinator_core.h"

#include <algorithm>

namespace shoal::rendezvous {

using Kind = Action::Kind;

CoordinatorCore::CoordinatorCore(job::Job job, CoreLimits limits)
    : job_(std::move(job)), limits_(limits) {
  for (size_t r = 0; r < job_.roles.size(); ++r) {
    for (int i = 0; i < job_.roles[r].most(); ++i) {
      numbers_[{job_.roles[r].name, i}] = static_cast<int>(tasks_.size());
      Task task;
      task.role = r;
      task.index = i;
      task.scaled_down = task.final = task.released = i >= job_.roles[r].replicas;
      if (task.final) task.state = job::TaskState::kEnded;
      tasks_.push_back(std::move(task));
    }
  }
  counts_.resize(job_.roles.size());
  role_restarts_.resize(job_.roles.size());
  membership_changed_.resize(job_.roles.size());
  excluded_.resize(job_.roles.size());
  restarting_group_.resize(job_.roles.size());
  for (const Task& task : tasks_) UpdateCounts(task, 1);
}

std::vector<Action> CoordinatorCore::Handle(const Event& event, Millis now) {
  now_ = std::max(now, now_);
  std::visit([this](const auto& one) { On(one); }, event);
  DetectActivity();
  if (reevaluate_) Reevaluate();
  ExitIfDone();
  // A heartbeat only puts deadlines off: the earlier one does no harm, and costs nothing here.
  if (rescan_ || !std::holds_alternative<LauncherHeartbeat>(event)) RecomputeDeadline();
  return std::exchange(actions_, {});
}

const job::Role& CoordinatorCore::role_of(int task) const {
  return job_.roles[tasks_[static_cast<size_t>(task)].role];
}
int CoordinatorCore::index_of(int task) const { return tasks_[static_cast<size_t>(task)].index; }

std::string CoordinatorCore::NameOf(int task) const {
  return role_of(task).name + " " + std::to_string(index_of(task));
}

std::optional<int> CoordinatorCore::Find(const std::string& role, int index) const {
  const auto found = numbers_.find({role, index});
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

std::optional<int> CoordinatorCore::TaskOf(MemberId member) const {
  const auto found = members_.find(member);
  if (found == members_.end()) return std::nullopt;
  return found->second;
}

MemberId CoordinatorCore::MemberOf(int task) const {
  const auto& launcher = tasks_[static_cast<size_t>(task)].launcher;
  return launcher ? launcher->member : 0;
}

job::TaskState CoordinatorCore::state_of(int task) const {
  return tasks_[static_cast<size_t>(task)].state;
}
int CoordinatorCore::attempt_of(int task) const {
  return tasks_[static_cast<size_t>(task)].attempt;
}

uint16_t CoordinatorCore::PortOf(int number, const std::string& port) const {
  const Task& task = tasks_[static_cast<size_t>(number)];
  const auto& ports = job_.roles[task.role].ports;
  for (size_t i = 0; i < ports.size() && i < task.ports.size(); ++i) {
    if (ports[i].name == port) return task.ports[i];
  }
  return 0;
}

framework::ClusterDescription CoordinatorCore::Cluster() const {
  framework::ClusterDescription cluster;
  cluster.generation = generation_;
  cluster.ending = stop_ != StopMode::kNone || decided_;
  for (const job::Role& role : job_.roles) {
    framework::ClusterRole described;
    described.name = role.name;
    for (const job::Port& port : role.ports) described.port_names.push_back(port.name);
    cluster.roles.push_back(std::move(described));
  }
  for (const Task& task : tasks_) {
    if (!IsDescribed(task)) continue;
    framework::ClusterRole& role = cluster.roles[task.role];
    // Those before it who are not there keep their places, so that an index stays one task's.
    const framework::ClusterMember nobody{"", std::vector<uint16_t>(role.port_names.size())};
    role.members.resize(static_cast<size_t>(task.index), nobody);
    if (EndedWell(task) && !task.scaled_down) role.ended.push_back(task.index);
    role.members.push_back({task.host, task.ports});
  }
  return cluster;
}

// ---- Joining ------------------------------------------------------------------------------------

std::optional<int> CoordinatorCore::ChooseTask(const LauncherJoined& event,
                                               std::string* why_not) const {
  if (event.index >= 0) {
    const auto task = Find(event.role, event.index);
    if (!task) {
      *why_not =
          "the job has no task " + event.role + " " + std::to_string(event.index) + " to join as";
    }
    return task;
  }
  std::optional<int> held;
  for (const auto& [name, task] : numbers_) {
    if (name.first != event.role || tasks_[static_cast<size_t>(task)].final) continue;
    if (!tasks_[static_cast<size_t>(task)].launcher) return task;
    if (!held && tasks_[static_cast<size_t>(task)].launcher->member == 0) held = task;
  }
  if (!held)
    *why_not = "every place of role '" + event.role + "' is taken, or there is no such role";
  return held;
}

void CoordinatorCore::On(const LauncherJoined& event) {
  const auto refuse = [&](std::string why) {
    Action& action = Emit(Kind::kRefuse);
    action.member = event.member;
    action.text = std::move(why);
  };
  std::string why_not;
  const auto chosen = ChooseTask(event, &why_not);
  if (!chosen) return refuse(why_not);
  Task& task = tasks_[static_cast<size_t>(*chosen)];
  const bool known = task.launcher && task.launcher->instance == event.instance;
  if (known && (event.generation > generation_ || event.last_attempt > task.attempt)) {
    // What was decided last has gone with an earlier coordinator (ADR 96).
    LoseLauncher(*chosen, "its coordinator was lost, and with it what it had decided last");
    return refuse("this coordinator does not know what the launcher was told last");
  }
  if (known) return Rejoin(*chosen, event);
  if (task.final && resumes_ > 0 && !verdict_) {  // it had ended before the job was suspended
    Emit(Kind::kRelease).member = event.member;
    return;
  }
  if (task.final) return refuse(NameOf(*chosen) + " has ended already");
  if (verdict_) return refuse("the job has ended");
  if (event.has_program) {
    return refuse("the place of " + NameOf(*chosen) +
                  " was given up while this launcher was away; its program must end");
  }
  if (excluded_[task.role].contains(event.node)) {
    refuse("this host, " + event.node + ", is excluded for role " + role_of(*chosen).name + ": " +
           excluded_[task.role][event.node]);
    actions_.back().excluded = true;
    return;
  }
  if (!task.launcher) return AssignLauncher(*chosen, event);
  if (event.incarnation < task.launcher->incarnation) {
    return refuse("a newer launcher holds the place of " + NameOf(*chosen));
  }
  JoinOccupiedSlot(*chosen, event);
}

// One launcher a place: a newcomer waits until the old one is known dead. A later incarnation is
// the engine's word that the earlier has died, as soon as its connection has gone too.
void CoordinatorCore::JoinOccupiedSlot(int number, const LauncherJoined& hello) {
  const AssignedLauncher& launcher = *tasks_[static_cast<size_t>(number)].launcher;
  waiting_.push_back({hello, number});
  if (launcher.member == 0 && hello.incarnation > launcher.incarnation) {
    LoseLauncher(number, "its launcher died");
    return;
  }
  Action& action = Emit(Kind::kWait, number);
  action.member = hello.member;
  action.text = "another launcher holds the place of " + NameOf(number) + "; waiting for its end";
}

void CoordinatorCore::AssignLauncher(int number, const LauncherJoined& hello) {
  JournalRecord record = RecordFor(JournalRecord::Kind::kLauncherAssigned, number);
  record.incarnation = hello.incarnation;
  record.instance = hello.instance;
  record.node = hello.node;
  Record(std::move(record));
  AssignedLauncher& launcher = *tasks_[static_cast<size_t>(number)].launcher;
  launcher.member = hello.member;
  launcher.heard = now_;
  members_[hello.member] = number;
  Action& action = Emit(Kind::kWelcome, number);
  action.lease = true;
}

void CoordinatorCore::Rejoin(int number, const LauncherJoined& hello) {
  Task& task = tasks_[static_cast<size_t>(number)];
  if (task.launcher->member != 0) {
    members_.erase(task.launcher->member);
    Action& action = Emit(Kind::kRefuse);
    action.member = task.launcher->member;
    action.text = "the launcher has connected again";
  }
  task.launcher->member = hello.member;
  task.launcher->heard = now_;
  task.launcher->suspected = false;
  members_[hello.member] = number;
  touched_.push_back(number);
  Emit(Kind::kWelcome, number).lease = !task.launcher->leased;
  if (task.final) {
    if (task.end) Emit(Kind::kAck, number).attempt = task.attempt;
    task.released = false;  // it may not have heard of it
    reevaluate_ = true;
    return;
  }
  if (generation_ > hello.generation && hello.has_program) Emit(Kind::kDescribe, number);
  // An order may have been lost with the connection; launchers take each attempt's only once.
  if (task.active && hello.last_attempt < task.attempt) {
    Emit(Kind::kStart, number).attempt = task.attempt;
  }
  if (task.state == job::TaskState::kDraining) {
    Action& action = Emit(task.killed ? Kind::kKill : Kind::kDrain, number);
    action.attempt = task.attempt;
    action.grace = std::max(task.kill_at - now_, Millis(0));
    action.abandon = stop_ == StopMode::kKill;
    action.text = stop_reason_.empty() ? "the tasks it follows have ended" : stop_reason_;
  }
  StartIfDue(number);
  reevaluate_ = true;
}

void CoordinatorCore::On(const PortsLeased& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  Task& task = tasks_[static_cast<size_t>(*number)];
  task.launcher->heard = now_;
  if (task.launcher->leased || task.final) return;
  const bool last_activity = task.host != event.host || task.ports != event.ports;
  JournalRecord record = RecordFor(JournalRecord::Kind::kLeased, *number);
  record.host = event.host;
  record.ports = event.ports;
  Record(std::move(record));
  if (gathering_) {
    reevaluate_ = true;
    return;
  }
  reevaluate_ = true;
  // Those who are being gathered again get theirs when all are there.
  if (membership_changed_[task.role]) return;  // it starts together with the others
  if (last_activity && !(group_restart_due_ && restarting_group_[task.role])) IssueGeneration();
  StartIfDue(*number);
}

void CoordinatorCore::IssueGeneration(bool after_group_restart) {
  JournalRecord record = RecordFor(JournalRecord::Kind::kGeneration, -1);
  record.restart = after_group_restart;
  record.generation = generation_ + 1;
  framework::ClusterDescription cluster = Cluster();
  cluster.generation = generation_ + 1;
  record.body = framework::ToJson(cluster);
  Record(std::move(record));
  if (generation_ > 1) Emit(Kind::kDescribe);
}

void CoordinatorCore::BroadcastEnds(int64_t after) {
  const bool any = std::any_of(counts_.begin(), counts_.end(),
                               [](const RoleCount& one) { return one.well > 0; });
  if (any) Emit(Kind::kDescribe).after = after;
}

// ---- Losing -------------------------------------------------------------------------------------

void CoordinatorCore::On(const LauncherDisconnected& event) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.hello.member == event.member; });
  const auto number = TaskOf(event.member);
  if (!number) return;
  members_.erase(event.member);
  Task& task = tasks_[static_cast<size_t>(*number)];
  task.launcher->member = 0;
  if (task.final) return;
  if (gathering_) return LoseLauncher(*number, "its launcher left");
  for (const Waiting& one : waiting_) {
    if (one.task == *number && one.hello.incarnation > task.launcher->incarnation) {
      return LoseLauncher(*number, "its launcher died");
    }
  }
}

void CoordinatorCore::On(const LauncherLost& event) {
  const auto number = Find(event.role, event.index);
  if (!number) return;
  const Task& task = tasks_[static_cast<size_t>(*number)];
  if (task.final || !task.launcher || task.launcher->incarnation > event.incarnation) return;
  LoseLauncher(*number, event.reason.empty() ? "its launcher died" : event.reason);
}

void CoordinatorCore::LoseLauncher(int number, const std::string& why, const ProgramEnded* last,
                                   bool silent) {
  Task& task = tasks_[static_cast<size_t>(number)];
  const MemberId member = std::exchange(task.launcher->member, 0);
  members_.erase(member);
  if (task.active) {
    ProgramEnded lost;
    lost.end = job::Lost(why);
    EndAttempt(number, last != nullptr ? *last : lost);
  }
  if (member != 0 && last != nullptr && task.final) {
    for (const Kind kind : {Kind::kAck, Kind::kRelease}) {
      Action& action = Emit(kind);
      action.member = member;
      action.attempt = task.attempt;
      action.after = task.ended_seq;
    }
  } else if (member != 0) {
    Action& action = Emit(Kind::kRefuse);
    action.member = member;
    action.text = "this launcher was given up: " + why;
  }
  if (!task.final) {
    JournalRecord record = RecordFor(JournalRecord::Kind::kLauncherLost, number);
    record.text = why;
    record.restart = silent;
    Record(std::move(record));
  }
  reevaluate_ = true;
  AssignWaitingLauncher(number);
}

void CoordinatorCore::AssignWaitingLauncher(int number) {
  const auto first = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& one) { return one.task == number; });
  if (first == waiting_.end()) return;
  const LauncherJoined hello = first->hello;
  waiting_.erase(first);
  On(hello);
}

// ---- Programs -----------------------------------------------------------------------------------

void CoordinatorCore::On(const LauncherHeartbeat& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  Task& task = tasks_[static_cast<size_t>(*number)];
  AssignedLauncher& launcher = *task.launcher;
  launcher.heard = now_;
  // Of whom it is not known whether he moves, it is taken that he does.
  if (task.active && (!event.still || event.attempt == task.attempt)) {
    NoteActivity(&task, event.still.value_or(Millis(0)));
  }
  // Its program has ended: no longer is it that which does not obey.
  if (event.storing && event.attempt == task.attempt && stop_ != StopMode::kKill) {
    task.kill_at = std::max(task.kill_at, now_ + limits_.kill_timeout);
  }
  if (std::exchange(launcher.suspected, false)) {
    Emit(Kind::kNote).text = NameOf(*number) + " is heard of again";
  }
}

void CoordinatorCore::On(const ProgramResult& event) {
  const auto number = TaskOf(event.member);
  if (!number || verdict_) return;
  const Task& task = tasks_[static_cast<size_t>(*number)];
  if (event.attempt != task.attempt || event.number != task.results || !task.active) return;
  JournalRecord record = RecordFor(JournalRecord::Kind::kResult, *number);
  record.body = event.body;
  Record(std::move(record));
}

}  // namespace shoal::rendezvous
