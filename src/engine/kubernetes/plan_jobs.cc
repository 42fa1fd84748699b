#include "engine/kubernetes/plan_jobs.h"

#include <algorithm>
#include <set>

namespace shoal::engine::kubernetes {
namespace {

// One computation of JobChanges. Matches the desired tasks of each role with the existing Jobs.
class Planner {
 public:
  Planner(const ObjectOptions& options, const DesiredJob& job, const std::string& name_space,
          const std::vector<JobView>& there, const std::map<TaskKey, KnownTask>& known)
      : options_(options), job_(job), name_space_(name_space), there_(there), known_(known) {}

  JobChanges Plan() {
    std::map<std::string, std::vector<const DesiredTask*>> wanted;
    std::vector<std::string> order;
    for (const DesiredTask& task : job_.tasks) {
      if (wanted[task.role].empty()) order.push_back(task.role);
      wanted[task.role].push_back(&task);
    }
    std::stable_partition(order.begin(), order.end(),
                          [](const std::string& role) { return IsCoordinator(role); });
    for (const JobView& job : there_) {
      order_ = std::max(order_, job.order + 1);
      if (wanted[job.role].empty()) changes_.remove.push_back(job.name);
    }
    for (const std::string& role : order) {
      auto& tasks = wanted[role];
      std::sort(tasks.begin(), tasks.end(),
                [](const DesiredTask* a, const DesiredTask* b) { return a->index < b->index; });
      PlanRole(role, tasks);
    }
    return std::move(changes_);
  }

 private:
  int NextOf(const DesiredTask& task) const {
    const auto found = known_.find({task.role, task.index});
    return found == known_.end() ? 0 : found->second.next;
  }
  bool HasLeft(const std::string& role, int index) const {
    const auto found = known_.find({role, index});
    return found != known_.end() && found->second.left;
  }
  bool IsOver(const std::string& role, int index) const {
    const auto found = known_.find({role, index});
    return found != known_.end() && found->second.over;
  }

  void Make(RoleJob role) {
    role.order = order_++;
    changes_.make.push_back(std::move(role));
  }

  void PlanRole(const std::string& role, const std::vector<const DesiredTask*>& tasks) {
    const JobView* whole = nullptr;
    std::vector<const JobView*> singles;
    for (const JobView& job : there_) {
      if (job.role != role) continue;
      if (job.single < 0) {
        whole = &job;
      } else {
        singles.push_back(&job);
      }
    }
    auto together = AsOneJob(options_, job_, tasks, name_space_);
    if (whole == nullptr && singles.empty() && together) {
      for (const DesiredTask* task : tasks) {
        if (const int next = NextOf(*task); next > 0) together->bases[task->index] = next;
      }
      return Make(std::move(*together));
    }
    std::set<int> covered;
    if (whole != nullptr) covered = Continue(*whole, tasks, together);
    for (const DesiredTask* task : tasks) {
      if (!covered.contains(task->index)) PlanSingle(*task, singles);
    }
    for (const JobView* single : singles) {
      const bool wanted = std::any_of(tasks.begin(), tasks.end(), [&](const DesiredTask* task) {
        return task->index == single->single;
      });
      if (!wanted) changes_.remove.push_back(single->name);
    }
  }

  // The role's tasks that its existing Job keeps.
  std::set<int> Continue(const JobView& whole, const std::vector<const DesiredTask*>& tasks,
                         const std::optional<RoleJob>& together) {
    std::set<int> covered;
    std::set<int> named;
    for (const DesiredTask* task : tasks) named.insert(task->index);
    if (together && together->digest == whole.digest && !whole.finished) {
      Resize resize{whole.name, together->count, whole.bases};
      for (int i = whole.completions; i < resize.count; ++i) {
        if (const int next = NextOf(*tasks[static_cast<size_t>(i)]); next > 0)
          resize.bases[i] = next;
      }
      if (resize.count != whole.completions) changes_.resize.push_back(std::move(resize));
      return named;
    }
    int least = 0;  // indexes at its end that are not desired are removed
    for (const int index : named) {
      if (index < whole.completions) least = index + 1;
    }
    for (int i = 0; i < least; ++i) {
      if (HasLeft(whole.role, i)) continue;  // its index is complete
      if (named.contains(i)) {
        covered.insert(i);
      } else if (!IsOver(whole.role, i)) {
        changes_.kept_longer.push_back({whole.role, i});
      }
    }
    if (least == 0) {
      changes_.remove.push_back(whole.name);
    } else if (least < whole.completions) {
      changes_.resize.push_back({whole.name, least, whole.bases});
    }
    return covered;
  }

  void PlanSingle(const DesiredTask& task, const std::vector<const JobView*>& singles) {
    RoleJob made = AsSingleJob(options_, job_, task, name_space_, NextOf(task));
    for (const JobView* single : singles) {
      if (single->single != task.index) continue;
      const bool same = single->digest == made.digest;
      const bool gone = IsOver(task.role, task.index) || HasLeft(task.role, task.index);
      if (same || !gone) return;
      changes_.remove.push_back(single->name);
    }
    Make(std::move(made));
  }

  const ObjectOptions& options_;
  const DesiredJob& job_;
  const std::string& name_space_;
  const std::vector<JobView>& there_;
  const std::map<TaskKey, KnownTask>& known_;
  int order_ = 0;
  JobChanges changes_;
};

}  // namespace

JobChanges PlanJobs(const ObjectOptions& options, const DesiredJob& job,
                    const std::string& name_space, const std::vector<JobView>& there,
                    const std::map<TaskKey, KnownTask>& known) {
  return Planner(options, job, name_space, there, known).Plan();
}

}  // namespace shoal::engine::kubernetes
