#include "queue/why/why.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>

namespace shoal::queue {
namespace {

FlavorMachines Machines(int64_t gpus) {
  FlavorMachines machines;
  machines.total[2] = gpus * 1000;
  return machines;
}

JobSpec Spec(const std::string& id, const std::string& queue, int32_t tasks) {
  JobSpec spec;
  spec.id = spec.name = id;
  spec.queue = queue;
  spec.tasks = tasks;
  spec.request.unit[2] = 1000;
  spec.request.least = spec.request.most = tasks;
  return spec;
}

std::string Changes(const Scheduler& scheduler, const std::string& id) {
  std::string text;
  const JobRef job = scheduler.Find(id);
  for (const Change& change : ChangesThatStart(scheduler, job))
    text += (text.empty() ? "" : "; ") + ChangeText(scheduler, job, change);
  return text;
}

TEST(Why, NamesTheSmallestChangeOfEachKind) {
  Policy policy = DefaultPolicy({"a", "b"});
  policy.queues[0].flavors = {"a", "b"};
  QueueSpec other;
  other.name = "other";
  other.flavors = {"b"};
  policy.queues.push_back(other);
  Scheduler scheduler(policy, {{"a", Machines(4)}, {"b", Machines(4)}});
  JobSpec first = Spec("first", "default", 1);
  first.flavors = {"a"};
  JobSpec job = Spec("job", "default", 4);
  job.flavors = {"a"};
  job.order = 1;
  ASSERT_TRUE(scheduler.Submit(first, Millis(0)).ok());
  ASSERT_TRUE(scheduler.Submit(job, Millis(0)).ok());
  scheduler.Decide(Millis(0));
  EXPECT_EQ(Changes(scheduler, "job"),
            "with 3 tasks instead of 4; on flavor b; with priority 10, which takes resources from "
            "other jobs");
  EXPECT_EQ(Changes(scheduler, "first"), "");
}

// A random state of up to six jobs.
Scheduler AnyState() {
  Policy policy = DefaultPolicy({"a", "b"});
  policy.queues.clear();
  const int queues = *rc::gen::inRange(1, 4);
  QueueSpec root;
  root.name = "root";
  policy.queues.push_back(root);
  for (int i = 0; i < queues; ++i) {
    QueueSpec queue;
    queue.name = "q" + std::to_string(i);
    queue.parent = "root";
    for (const char* const flavor : {"a", "b"})
      queue.quota[flavor][2].nominal = *rc::gen::inRange(0, 4) * 1000;
    policy.queues.push_back(queue);
  }
  policy.default_queue = "q0";
  Scheduler scheduler(
      policy, {{"a", Machines(*rc::gen::inRange(1, 7))}, {"b", Machines(*rc::gen::inRange(1, 7))}});
  const int jobs = *rc::gen::inRange(1, 7);
  for (int i = 0; i < jobs; ++i) {
    JobSpec spec = Spec("j" + std::to_string(i), "q" + std::to_string(*rc::gen::inRange(0, queues)),
                        *rc::gen::inRange(1, 6));
    spec.order = i;
    if (*rc::gen::arbitrary<bool>()) spec.flavors = {*rc::gen::arbitrary<bool>() ? "a" : "b"};
    if (*rc::gen::arbitrary<bool>()) spec.run_time = std::chrono::seconds(*rc::gen::inRange(1, 50));
    spec.priority = *rc::gen::inRange(0, 2);
    RC_ASSERT(scheduler.Submit(spec, Millis(i)).ok());
    scheduler.Decide(Millis(i));
  }
  return scheduler;
}

// Starts the job from nothing: all jobs are submitted anew to a scheduler that has the same running
// jobs, and the changed job takes the place of the old one.
bool StartsAnew(const Scheduler& scheduler, JobRef job, const JobSpec& changed) {
  Scheduler copy = scheduler;
  const Millis now = copy.state().now();
  copy.End(job, now);
  const Result<JobRef> again = copy.Submit(changed, now);
  if (!again.ok()) return false;
  copy.Decide(now);
  const Phase phase = copy.job(*again).phase;
  return phase == Phase::kRunning || phase == Phase::kAssigned;
}

// Every change that is named starts the job, and whatever a search over all changes finds is found:
// the same number of tasks, a flavor if there is one, a queue if there is one.
TEST(Why, AgreesWithASearchOverAllChanges) {
  const char* const text = std::getenv("SHOAL_PROPERTY_STATES");
  const int states = text == nullptr ? 100 : std::atoi(text);
  EXPECT_TRUE(rc::check([states] {
    for (int i = 0; i < std::max(1, states / 100); ++i) {
      const Scheduler scheduler = AnyState();
      for (size_t j = 0; j < scheduler.state().job_slots(); ++j) {
        const auto job = static_cast<JobRef>(j);
        if (scheduler.job(job).phase != Phase::kWaiting) continue;
        const JobSpec& spec = scheduler.job(job).spec;
        int32_t tasks = 0;
        for (int32_t n = 1; n < spec.tasks; ++n) {
          JobSpec changed = spec;
          changed.tasks = changed.request.least = changed.request.most = n;
          if (StartsAnew(scheduler, job, changed)) tasks = n;
        }
        bool flavor = false;
        for (const std::string name : {"a", "b"}) {
          JobSpec changed = spec;
          changed.flavors = {name};
          flavor |= !spec.flavors.empty() && spec.flavors[0] != name &&
                    StartsAnew(scheduler, job, changed);
        }
        bool queue = false;
        for (const QuotaTree::Node& node : scheduler.state().tree().nodes()) {
          JobSpec changed = spec;
          changed.queue = node.spec.name;
          queue |= node.leaf && node.spec.name != spec.queue && StartsAnew(scheduler, job, changed);
        }
        int32_t found_tasks = 0;
        bool found_flavor = false;
        bool found_queue = false;
        for (const Change& change : ChangesThatStart(scheduler, job)) {
          RC_ASSERT(TryChange(scheduler, job, change).starts);
          if (change.kind == ChangeKind::kFewerTasks) found_tasks = change.tasks;
          found_flavor |= change.kind == ChangeKind::kFlavor;
          found_queue |= change.kind == ChangeKind::kQueue;
        }
        RC_ASSERT(found_tasks == tasks);
        RC_ASSERT(found_flavor == flavor);
        RC_ASSERT(found_queue == queue);
      }
    }
  }));
}

}  // namespace
}  // namespace shoal::queue
