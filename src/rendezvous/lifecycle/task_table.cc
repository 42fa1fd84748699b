#include "rendezvous/lifecycle/task_table.h"

#include <algorithm>

namespace shoal::rendezvous {

TaskTable::TaskTable(const job::Job* job) : job_(job), counts_(job->roles.size()) {
  for (size_t r = 0; r < job_->roles.size(); ++r) {
    for (int i = 0; i < job_->roles[r].most(); ++i) {
      numbers_[{job_->roles[r].name, i}] = static_cast<int>(tasks_.size());
      Task task;
      task.role = r;
      task.index = i;
      task.scaled_down = task.final = task.released = i >= job_->roles[r].replicas;
      if (task.final) task.state = job::TaskState::kEnded;
      tasks_.push_back(std::move(task));
    }
  }
  for (const Task& task : tasks_) UpdateCounts(task, 1);
}

const job::Role& TaskTable::role_of(int task) const { return job_->roles[(*this)[task].role]; }

int TaskTable::index_of(int task) const { return (*this)[task].index; }

std::string TaskTable::NameOf(int task) const {
  return role_of(task).name + " " + std::to_string(index_of(task));
}

std::optional<int> TaskTable::Find(const std::string& role, int index) const {
  const auto found = numbers_.find({role, index});
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

std::optional<int> TaskTable::TaskOf(MemberId member) const {
  const auto found = members_.find(member);
  if (found == members_.end()) return std::nullopt;
  return found->second;
}

MemberId TaskTable::MemberOf(int task) const {
  const auto& launcher = (*this)[task].launcher;
  return launcher ? launcher->member : 0;
}

uint16_t TaskTable::PortOf(int number, const std::string& port) const {
  const Task& task = (*this)[number];
  const auto& ports = job_->roles[task.role].ports;
  for (size_t i = 0; i < ports.size() && i < task.ports.size(); ++i) {
    if (ports[i].name == port) return task.ports[i];
  }
  return 0;
}

void TaskTable::UpdateCounts(const Task& task, int by) {
  if (task.scaled_down && task.final) return;
  RoleCount& count = counts_[task.role];
  count.tasks += by;
  const bool leased = task.launcher && task.launcher->leased;
  if (task.ended_well() || (leased && !task.final)) count.there += by;
  const bool elastic = job_->roles[task.role].elastic();
  if (elastic && task.host.empty() && !task.final) count.missing += by;
  if (task.running()) count.active += by;
  if (task.program == ProgramState::kServing) count.ready += by;
  if (leased) count.leased += by;
  if (task.final) count.final += by;
  if (task.ended_well()) count.well += by;
}

bool TaskTable::IsDescribed(const Task& task) const {
  if (!job_->roles[task.role].elastic()) return true;
  if (task.scaled_down && task.final) return false;
  return !task.host.empty() && (!task.final || task.ended_well());
}

int TaskTable::initial_members(int number) const {
  return initial_members_.empty() ? 0 : initial_members_[tasks_[static_cast<size_t>(number)].role];
}

void TaskTable::RecordInitialMembers() {
  initial_members_.assign(job_->roles.size(), 0);
  for (const Task& task : tasks_) {
    int& members = initial_members_[task.role];
    if (IsDescribed(task)) members = std::max(members, task.index + 1);
  }
}

bool TaskTable::IsOptionalAndAbsent(const Task& task) const {
  const job::Role& role = job_->roles[task.role];
  return role.elastic() && !task.final && task.host.empty() &&
         counts_[task.role].there >= role.least();
}

bool TaskTable::RoleEnded(const std::string& role) const {
  for (size_t r = 0; r < job_->roles.size(); ++r) {
    if (job_->roles[r].name == role && counts_[r].final < counts_[r].tasks) return false;
  }
  return true;
}

bool TaskTable::AllFinal() const {
  return std::all_of(counts_.begin(), counts_.end(),
                     [](const RoleCount& one) { return one.final == one.tasks; });
}

void TaskTable::ClearCounts() { std::fill(counts_.begin(), counts_.end(), RoleCount{}); }

}  // namespace shoal::rendezvous
