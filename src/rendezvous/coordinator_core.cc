// Members: joining, leases, losses, and what their programs report.
#include "rendezvous/coordinator_core.h"

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
      task.retired = task.final = task.released = i >= job_.roles[r].replicas;
      if (task.final) task.state = job::TaskState::kEnded;
      tasks_.push_back(std::move(task));
    }
  }
  counts_.resize(job_.roles.size());
  role_restarts_.resize(job_.roles.size());
  roster_changed_.resize(job_.roles.size());
  excluded_.resize(job_.roles.size());
  regrouping_.resize(job_.roles.size());
  for (const Task& task : tasks_) Count(task, 1);
}

std::vector<Action> CoordinatorCore::Handle(const Event& event, Millis now) {
  now_ = std::max(now, now_);
  std::visit([this](const auto& one) { On(one); }, event);
  SayWhetherItMoves();
  if (unsettled_) Settle();
  MaybeExit();
  // A heartbeat only puts deadlines off: the earlier one does no harm, and costs nothing here.
  if (rescan_ || !std::holds_alternative<Heard>(event)) RecomputeDeadline();
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
  const auto& holder = tasks_[static_cast<size_t>(task)].holder;
  return holder ? holder->member : 0;
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

dialect::ClusterDescription CoordinatorCore::Cluster() const {
  dialect::ClusterDescription cluster;
  cluster.generation = generation_;
  cluster.ending = stop_ != StopMode::kNone || decided_;
  for (const job::Role& role : job_.roles) {
    dialect::ClusterRole described;
    described.name = role.name;
    for (const job::Port& port : role.ports) described.port_names.push_back(port.name);
    cluster.roles.push_back(std::move(described));
  }
  for (const Task& task : tasks_) {
    if (!IsDescribed(task)) continue;
    dialect::ClusterRole& role = cluster.roles[task.role];
    // Those before it who are not there keep their places, so that an index stays one task's.
    const dialect::Member nobody{"", std::vector<uint16_t>(role.port_names.size())};
    role.members.resize(static_cast<size_t>(task.index), nobody);
    if (EndedWell(task) && !task.retired) role.ended.push_back(task.index);
    role.members.push_back({task.host, task.ports});
  }
  return cluster;
}

// ---- Joining ------------------------------------------------------------------------------------

std::optional<int> CoordinatorCore::ChooseTask(const Joined& event, std::string* why_not) const {
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
    if (!tasks_[static_cast<size_t>(task)].holder) return task;
    if (!held && tasks_[static_cast<size_t>(task)].holder->member == 0) held = task;
  }
  if (!held)
    *why_not = "every place of role '" + event.role + "' is taken, or there is no such role";
  return held;
}

void CoordinatorCore::On(const Joined& event) {
  const auto refuse = [&](std::string why) {
    Action& action = Do(Kind::kRefuse);
    action.member = event.member;
    action.text = std::move(why);
  };
  std::string why_not;
  const auto chosen = ChooseTask(event, &why_not);
  if (!chosen) return refuse(why_not);
  Task& task = tasks_[static_cast<size_t>(*chosen)];
  const bool known = task.holder && task.holder->instance == event.instance;
  if (known && (event.generation > generation_ || event.last_attempt > task.attempt)) {
    // What was decided last has gone with an earlier coordinator (ADR 96).
    LoseHolder(*chosen, "its coordinator was lost, and with it what it had decided last");
    return refuse("this coordinator does not know what the launcher was told last");
  }
  if (known) return Rejoin(*chosen, event);
  if (task.final && resumes_ > 0 && !verdict_) {  // it had ended before the job was suspended
    Do(Kind::kRelease).member = event.member;
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
  if (!task.holder) return Place(*chosen, event);
  if (event.incarnation < task.holder->incarnation) {
    return refuse("a newer launcher holds the place of " + NameOf(*chosen));
  }
  JoinHeldPlace(*chosen, event);
}

// One holder a place: a newcomer waits until the old one is known dead. A later incarnation is the
// engine's word that the earlier has died, as soon as its connection has gone too.
void CoordinatorCore::JoinHeldPlace(int number, const Joined& hello) {
  const Holder& holder = *tasks_[static_cast<size_t>(number)].holder;
  waiting_.push_back({hello, number});
  if (holder.member == 0 && hello.incarnation > holder.incarnation) {
    LoseHolder(number, "its launcher died");
    return;
  }
  Action& action = Do(Kind::kWait, number);
  action.member = hello.member;
  action.text = "another launcher holds the place of " + NameOf(number) + "; waiting for its end";
}

void CoordinatorCore::Place(int number, const Joined& hello) {
  Fact fact = FactOf(Fact::Kind::kPlaced, number);
  fact.incarnation = hello.incarnation;
  fact.instance = hello.instance;
  fact.node = hello.node;
  Record(std::move(fact));
  Holder& holder = *tasks_[static_cast<size_t>(number)].holder;
  holder.member = hello.member;
  holder.heard = now_;
  members_[hello.member] = number;
  Action& action = Do(Kind::kWelcome, number);
  action.lease = true;
}

void CoordinatorCore::Rejoin(int number, const Joined& hello) {
  Task& task = tasks_[static_cast<size_t>(number)];
  if (task.holder->member != 0) {
    members_.erase(task.holder->member);
    Action& action = Do(Kind::kRefuse);
    action.member = task.holder->member;
    action.text = "the launcher has connected again";
  }
  task.holder->member = hello.member;
  task.holder->heard = now_;
  task.holder->suspected = false;
  members_[hello.member] = number;
  touched_.push_back(number);
  Do(Kind::kWelcome, number).lease = !task.holder->leased;
  if (task.final) {
    if (task.end) Do(Kind::kAck, number).attempt = task.attempt;
    task.released = false;  // it may not have heard of it
    unsettled_ = true;
    return;
  }
  if (generation_ > hello.generation && hello.has_program) Do(Kind::kDescribe, number);
  // An order may have been lost with the connection; launchers take each attempt's only once.
  if (task.active && hello.last_attempt < task.attempt) {
    Do(Kind::kStart, number).attempt = task.attempt;
  }
  if (task.state == job::TaskState::kDraining) {
    Action& action = Do(task.killed ? Kind::kKill : Kind::kDrain, number);
    action.attempt = task.attempt;
    action.grace = std::max(task.kill_at - now_, Millis(0));
    action.abandon = stop_ == StopMode::kKill;
    action.text = stop_reason_.empty() ? "the tasks it follows have ended" : stop_reason_;
  }
  StartIfDue(number);
  unsettled_ = true;
}

void CoordinatorCore::On(const PortsLeased& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  Task& task = tasks_[static_cast<size_t>(*number)];
  task.holder->heard = now_;
  if (task.holder->leased || task.final) return;
  const bool moved = task.host != event.host || task.ports != event.ports;
  Fact fact = FactOf(Fact::Kind::kLeased, *number);
  fact.host = event.host;
  fact.ports = event.ports;
  Record(std::move(fact));
  if (gathering_) {
    unsettled_ = true;
    return;
  }
  unsettled_ = true;
  // Those who are being gathered again get theirs when all are there.
  if (roster_changed_[task.role]) return;  // it starts together with the others
  if (moved && !(regroup_due_ && regrouping_[task.role])) IssueGeneration();
  StartIfDue(*number);
}

void CoordinatorCore::IssueGeneration(bool regrouped) {
  Fact fact = FactOf(Fact::Kind::kGeneration, -1);
  fact.restart = regrouped;
  fact.generation = generation_ + 1;
  dialect::ClusterDescription cluster = Cluster();
  cluster.generation = generation_ + 1;
  fact.body = dialect::ToJson(cluster);
  Record(std::move(fact));
  if (generation_ > 1) Do(Kind::kDescribe);
}

void CoordinatorCore::DescribeEnds(int64_t after) {
  const bool any = std::any_of(counts_.begin(), counts_.end(),
                               [](const RoleCount& one) { return one.well > 0; });
  if (any) Do(Kind::kDescribe).after = after;
}

// ---- Losing -------------------------------------------------------------------------------------

void CoordinatorCore::On(const Left& event) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.hello.member == event.member; });
  const auto number = TaskOf(event.member);
  if (!number) return;
  members_.erase(event.member);
  Task& task = tasks_[static_cast<size_t>(*number)];
  task.holder->member = 0;
  if (task.final) return;
  if (gathering_) return LoseHolder(*number, "its launcher left");
  for (const Waiting& one : waiting_) {
    if (one.task == *number && one.hello.incarnation > task.holder->incarnation) {
      return LoseHolder(*number, "its launcher died");
    }
  }
}

void CoordinatorCore::On(const LauncherLost& event) {
  const auto number = Find(event.role, event.index);
  if (!number) return;
  const Task& task = tasks_[static_cast<size_t>(*number)];
  if (task.final || !task.holder || task.holder->incarnation > event.incarnation) return;
  LoseHolder(*number, event.reason.empty() ? "its launcher died" : event.reason);
}

void CoordinatorCore::LoseHolder(int number, const std::string& why, const ProgramEnded* last,
                                 bool silent) {
  Task& task = tasks_[static_cast<size_t>(number)];
  const MemberId member = std::exchange(task.holder->member, 0);
  members_.erase(member);
  if (task.active) {
    ProgramEnded lost;
    lost.end = job::Lost(why);
    EndAttempt(number, last != nullptr ? *last : lost);
  }
  if (member != 0 && last != nullptr && task.final) {
    for (const Kind kind : {Kind::kAck, Kind::kRelease}) {
      Action& action = Do(kind);
      action.member = member;
      action.attempt = task.attempt;
      action.after = task.ended_seq;
    }
  } else if (member != 0) {
    Action& action = Do(Kind::kRefuse);
    action.member = member;
    action.text = "this launcher was given up: " + why;
  }
  if (!task.final) {
    Fact fact = FactOf(Fact::Kind::kUnplaced, number);
    fact.text = why;
    fact.restart = silent;
    Record(std::move(fact));
  }
  unsettled_ = true;
  PlaceWaiting(number);
}

void CoordinatorCore::PlaceWaiting(int number) {
  const auto first = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& one) { return one.task == number; });
  if (first == waiting_.end()) return;
  const Joined hello = first->hello;
  waiting_.erase(first);
  On(hello);
}

// ---- Programs -----------------------------------------------------------------------------------

void CoordinatorCore::On(const Heard& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  Task& task = tasks_[static_cast<size_t>(*number)];
  Holder& holder = *task.holder;
  holder.heard = now_;
  // Of whom it is not known whether he moves, it is taken that he does.
  if (task.active && (!event.still || event.attempt == task.attempt)) {
    Moved(&task, event.still.value_or(Millis(0)));
  }
  // Its program has ended: no longer is it that which does not obey.
  if (event.storing && event.attempt == task.attempt && stop_ != StopMode::kKill) {
    task.kill_at = std::max(task.kill_at, now_ + limits_.kill_again);
  }
  if (std::exchange(holder.suspected, false)) {
    Do(Kind::kNote).text = NameOf(*number) + " is heard of again";
  }
}

void CoordinatorCore::On(const ProgramResult& event) {
  const auto number = TaskOf(event.member);
  if (!number || verdict_) return;
  const Task& task = tasks_[static_cast<size_t>(*number)];
  if (event.attempt != task.attempt || event.number != task.results || !task.active) return;
  Fact fact = FactOf(Fact::Kind::kResult, *number);
  fact.body = event.body;
  Record(std::move(fact));
}

}  // namespace shoal::rendezvous
