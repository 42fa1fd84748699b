#include "queue/policy/policy_fields.h"

#include <cmath>

namespace shoal::queue {
namespace {

constexpr double kDay = 86'400'000;
constexpr double kMostCores = 1e9;
constexpr double kMostBytes = 1e18;

using job::Type;
using V = const job::Value&;
using T = const PolicyTarget&;

int64_t Thousandths(double number) { return std::llround(number * 1000); }
// Rounded up to KiB.
int64_t Kibibytes(int64_t bytes) { return (bytes + 1023) / 1024; }

PreemptRule RuleOf(const std::string& name) {
  if (name == "never") return PreemptRule::kNever;
  return name == "lower_priority" ? PreemptRule::kLowerPriority : PreemptRule::kAny;
}

// clang-format off
const PolicyField kFields[] = {
  {{.path = "default_queue", .type = Type::kName, .most = 63, .fallback = "default",
    .doc = "Queue of jobs that name none. It must be a queue without queues below it."},
   [](V v, T t) { t.policy->default_queue = v.text; }},
  {{.path = "flavors", .type = Type::kSections, .fallback = "required",
    .doc = "The kinds of machines, by name: a GPU type, spot machines, nodes with a label. All tasks of a "
           "job run on one flavor."}},
  {{.path = "flavors.*.engine", .type = Type::kName, .most = 63, .fallback = "any engine",
    .doc = "Engine, or instance of one, to which the machines belong."},
   [](V v, T t) { t.flavor->engine = v.text; }},
  {{.path = "flavors.*.labels", .type = Type::kTextMap, .fallback = "none",
    .doc = "Labels of the nodes, on engines that have them."},
   [](V v, T t) { t.flavor->labels = v.map; }},
  {{.path = "flavors.*.spot", .type = Type::kChoice, .choices = "true|false", .fallback = "false",
    .doc = "Whether the machines can be taken away at any time."},
   [](V v, T t) { t.flavor->spot = v.text == "true"; }},

  {{.path = "queues", .type = Type::kSections, .shorthand = "parent", .fallback = "required",
    .doc = "The queues, by name. `vision: research` is short for `vision: {parent: research}`."}},
  {{.path = "queues.*.parent", .type = Type::kName, .most = 63, .fallback = "none: a tree of its own",
    .doc = "The queue above it. Queues of one tree lend each other what they do not use. Only queues "
           "without queues below them take jobs."},
   [](V v, T t) { t.queue->parent = v.text; }},
  {{.path = "queues.*.weight", .type = Type::kNumber, .least = 0.001, .most = 1000, .fallback = "1",
    .doc = "A queue of weight 2 is due twice the share of its sibling of weight 1."},
   [](V v, T t) { t.queue->weight = v.number; }},
  {{.path = "queues.*.order", .type = Type::kChoice, .choices = "backfill|strict", .fallback = "backfill",
    .doc = "With `strict`, no job overtakes the first of the queue. With `backfill`, a later job starts if "
           "it does not delay the first."},
   [](V v, T t) { t.queue->order = v.text == "strict" ? QueueOrder::kStrict : QueueOrder::kBackfill; }},
  {{.path = "queues.*.mode", .type = Type::kChoice, .choices = "open|hold|drain", .fallback = "open",
    .doc = "`hold` starts no further jobs of the queue and of those below it; `drain` also preempts those "
           "that run."},
   [](V v, T t) {
     t.queue->mode = v.text == "hold" ? QueueMode::kHold
                     : v.text == "drain" ? QueueMode::kDrain : QueueMode::kOpen; }},
  {{.path = "queues.*.operators", .type = Type::kTexts, .most = 64, .fallback = "none",
    .doc = "Teams whose operators may hold, drain and resume the queue and those below it with `shoal queue`; "
           "administrators may always."},
   [](V v, T t) { t.queue->operators = v.texts; }},
  {{.path = "queues.*.flavors", .type = Type::kTexts, .most = 32,
    .fallback = "those of the queue above, else those with a quota in the tree, else all",
    .doc = "The flavors that its jobs may use, the preferred first."},
   [](V v, T t) { t.queue->flavors = v.texts; }},
  {{.path = "queues.*.preempt", .type = Type::kChoice, .choices = "never|lower_priority",
    .fallback = "lower_priority",
    .doc = "Whether the first job of the queue may preempt running jobs of the same queue with a lower "
           "priority."},
   [](V v, T t) { t.queue->preempt_within = RuleOf(v.text); }},
  {{.path = "queues.*.reclaim", .type = Type::kChoice, .choices = "never|lower_priority|any",
    .fallback = "any",
    .doc = "Which jobs of borrowing queues it may preempt to get its nominal quota back."},
   [](V v, T t) { t.queue->reclaim = RuleOf(v.text); }},
  {{.path = "queues.*.quota", .type = Type::kSections, .fallback = "none: it borrows",
    .doc = "Quotas, by flavor. A resource without a quota in the whole tree is limited only by the "
           "machines."}},
  {{.path = "queues.*.quota.*.cpu", .type = Type::kSection, .shorthand = "nominal", .fallback = "none",
    .doc = "Cores. `cpu: 8` is short for `cpu: {nominal: 8}`."}},
  {{.path = "queues.*.quota.*.cpu.nominal", .type = Type::kNumber, .most = kMostCores, .fallback = "0",
    .doc = "What the queue gets back at once when others have borrowed it."},
   [](V v, T t) { t.quota->nominal = Thousandths(v.number); }},
  {{.path = "queues.*.quota.*.cpu.borrow", .type = Type::kNumber, .most = kMostCores, .fallback = "no limit",
    .doc = "The most that it uses of others' quota."},
   [](V v, T t) { t.quota->borrow = Thousandths(v.number); }},
  {{.path = "queues.*.quota.*.cpu.lend", .type = Type::kNumber, .most = kMostCores, .fallback = "all",
    .doc = "The most of its own that others may use."},
   [](V v, T t) { t.quota->lend = Thousandths(v.number); }},
  {{.path = "queues.*.quota.*.memory", .type = Type::kSection, .shorthand = "nominal", .fallback = "none",
    .doc = "Memory, in the same way."}},
  {{.path = "queues.*.quota.*.memory.nominal", .type = Type::kSize, .most = kMostBytes, .fallback = "0",
    .doc = "As of cpu."},
   [](V v, T t) { t.quota->nominal = Kibibytes(v.integer); }},
  {{.path = "queues.*.quota.*.memory.borrow", .type = Type::kSize, .most = kMostBytes, .fallback = "no limit",
    .doc = "As of cpu."},
   [](V v, T t) { t.quota->borrow = Kibibytes(v.integer); }},
  {{.path = "queues.*.quota.*.memory.lend", .type = Type::kSize, .most = kMostBytes, .fallback = "all",
    .doc = "As of cpu."},
   [](V v, T t) { t.quota->lend = Kibibytes(v.integer); }},
  {{.path = "queues.*.quota.*.gpu", .type = Type::kSection, .shorthand = "nominal", .fallback = "none",
    .doc = "Devices, in the same way."}},
  {{.path = "queues.*.quota.*.gpu.nominal", .type = Type::kNumber, .most = kMostCores, .fallback = "0",
    .doc = "As of cpu."},
   [](V v, T t) { t.quota->nominal = Thousandths(v.number); }},
  {{.path = "queues.*.quota.*.gpu.borrow", .type = Type::kNumber, .most = kMostCores, .fallback = "no limit",
    .doc = "As of cpu."},
   [](V v, T t) { t.quota->borrow = Thousandths(v.number); }},
  {{.path = "queues.*.quota.*.gpu.lend", .type = Type::kNumber, .most = kMostCores, .fallback = "all",
    .doc = "As of cpu."},
   [](V v, T t) { t.quota->lend = Thousandths(v.number); }},
  {{.path = "queues.*.per_user", .type = Type::kSection, .fallback = "no limits",
    .doc = "What the running jobs of one user may hold together, in this queue and those below it."}},
  {{.path = "queues.*.per_user.jobs", .type = Type::kInteger, .least = 1, .most = 1e6, .fallback = "no limit",
    .doc = "Number of jobs."},
   [](V v, T t) { t.queue->per_user.jobs = v.integer; }},
  {{.path = "queues.*.per_user.cpu", .type = Type::kNumber, .least = 0.001, .most = kMostCores,
    .fallback = "no limit", .doc = "Cores."},
   [](V v, T t) { t.queue->per_user.amounts[0] = Thousandths(v.number); }},
  {{.path = "queues.*.per_user.memory", .type = Type::kSize, .least = 1024, .most = kMostBytes,
    .fallback = "no limit", .doc = "Memory."},
   [](V v, T t) { t.queue->per_user.amounts[1] = Kibibytes(v.integer); }},
  {{.path = "queues.*.per_user.gpu", .type = Type::kNumber, .most = kMostCores, .fallback = "no limit",
    .doc = "Devices."},
   [](V v, T t) { t.queue->per_user.amounts[2] = Thousandths(v.number); }},
  {{.path = "queues.*.per_team", .type = Type::kSection, .fallback = "no limits",
    .doc = "The same for the jobs of one team."}},
  {{.path = "queues.*.per_team.jobs", .type = Type::kInteger, .least = 1, .most = 1e6, .fallback = "no limit",
    .doc = "Number of jobs."},
   [](V v, T t) { t.queue->per_team.jobs = v.integer; }},
  {{.path = "queues.*.per_team.cpu", .type = Type::kNumber, .least = 0.001, .most = kMostCores,
    .fallback = "no limit", .doc = "Cores."},
   [](V v, T t) { t.queue->per_team.amounts[0] = Thousandths(v.number); }},
  {{.path = "queues.*.per_team.memory", .type = Type::kSize, .least = 1024, .most = kMostBytes,
    .fallback = "no limit", .doc = "Memory."},
   [](V v, T t) { t.queue->per_team.amounts[1] = Kibibytes(v.integer); }},
  {{.path = "queues.*.per_team.gpu", .type = Type::kNumber, .most = kMostCores, .fallback = "no limit",
    .doc = "Devices."},
   [](V v, T t) { t.queue->per_team.amounts[2] = Thousandths(v.number); }},

  {{.path = "maintenance", .type = Type::kSections, .fallback = "none",
    .doc = "Windows in which no job runs, by name. A job that is known to run into one does not start; what "
           "runs when it begins is preempted."}},
  {{.path = "maintenance.*.from", .type = Type::kText, .most = 20, .fallback = "required",
    .doc = "Beginning, as 2026-12-24T18:00:00Z."},
   nullptr},
  {{.path = "maintenance.*.until", .type = Type::kText, .most = 20, .fallback = "required",
    .doc = "End, in the same form."},
   nullptr},
  {{.path = "maintenance.*.flavors", .type = Type::kTexts, .most = 32, .fallback = "all",
    .doc = "The flavors that it concerns."},
   [](V v, T t) { t.window->flavors = v.texts; }},

  {{.path = "fairness", .type = Type::kSection, .fallback = "see its fields",
    .doc = "How past usage counts between queues."}},
  {{.path = "fairness.half_life", .type = Type::kDuration, .most = 3660 * kDay, .fallback = "24h",
    .doc = "Time after which past usage counts half; 0: only present usage counts."},
   [](V v, T t) { t.policy->usage_half_life = v.duration; }},
  {{.path = "backfill", .type = Type::kChoice, .choices = "true|false", .fallback = "true",
    .doc = "`false` makes every queue strict."},
   [](V v, T t) { t.policy->backfill = v.text == "true"; }},
  {{.path = "elastic", .type = Type::kSection, .fallback = "see its fields",
    .doc = "Jobs with `min` and `max`."}},
  {{.path = "elastic.grow", .type = Type::kChoice, .choices = "true|false", .fallback = "true",
    .doc = "Whether they grow into capacity that no waiting job can use, and shrink before a job is preempted. "
           "`false`: on a server they have the size of their file."},
   [](V v, T t) { t.policy->grow = v.text == "true"; }},
  {{.path = "elastic.pause", .type = Type::kDuration, .most = kDay, .fallback = "30s",
    .doc = "Least time between two growths of a job."},
   [](V v, T t) { t.policy->resize_pause = v.duration; }},
  {{.path = "preempt_grace", .type = Type::kDuration, .most = kDay, .fallback = "30s",
    .doc = "Time that a preempted job is expected to take to save and stop; for expected starts only."},
   [](V v, T t) { t.policy->preempt_grace = v.duration; }},
  {{.path = "requeue", .type = Type::kSection, .fallback = "see its fields",
    .doc = "Jobs whose tasks did not gather within limits.gather go back into their queue."}},
  {{.path = "requeue.first", .type = Type::kDuration, .least = 100, .most = kDay, .fallback = "10s",
    .doc = "Distance of the second attempt. It doubles with each failure."},
   [](V v, T t) { t.policy->requeue_first = v.duration; }},
  {{.path = "requeue.most", .type = Type::kDuration, .least = 100, .most = kDay, .fallback = "30m",
    .doc = "Largest distance."},
   [](V v, T t) { t.policy->requeue_most = v.duration; }},
};
// clang-format on

}  // namespace

std::span<const PolicyField> PolicyFields() { return kFields; }

const PolicyField* FindPolicyField(std::string_view path) {
  for (const PolicyField& field : kFields) {
    if (field.field.path == path) return &field;
  }
  return nullptr;
}

std::vector<std::string> PolicyFieldsBelow(std::string_view section) {
  std::vector<std::string> names;
  const std::string prefix = section.empty() ? "" : std::string(section) + ".";
  for (const PolicyField& field : kFields) {
    const std::string_view path = field.field.path;
    if (!path.starts_with(prefix)) continue;
    const std::string_view name = path.substr(prefix.size());
    if (!name.empty() && name != "*" && name.find('.') == std::string_view::npos)
      names.emplace_back(name);
  }
  return names;
}

}  // namespace shoal::queue
