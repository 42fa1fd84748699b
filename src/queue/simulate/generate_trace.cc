// Generated traces.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "queue/simulate/trace.h"

namespace shoal::queue {
namespace {

// SplitMix64 (Steele, Lea and Flood 2014).
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  double Uniform() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1.0p-53; }
  double Exponential(double mean) { return -mean * std::log(Uniform()); }
  double Normal() {
    return std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  uint64_t state_;
};

// A set of workloads of Kueue's generator: `count` of them, one each `interval`, from each queue.
struct KueueSet {
  const char* name;
  int count;
  int64_t interval_ms;
  int64_t run_ms;
  int32_t priority;
  int64_t cpu;
};

struct KueueShape {
  int cohorts;
  int queues;  // of each
  std::vector<KueueSet> sets;
};

Scenario MakeKueue(const KueueShape& shape) {
  Scenario scenario;
  scenario.policy = DefaultPolicy({"rf"});
  scenario.policy.queues.clear();
  scenario.policy.usage_half_life = Millis(0);
  scenario.policy.preempt_grace = Millis(0);
  for (int cohort = 0; cohort < shape.cohorts; ++cohort) {
    QueueSpec root;
    root.name = "cohort-" + std::to_string(cohort);
    scenario.policy.queues.push_back(root);
    for (int q = 0; q < shape.queues; ++q) {
      QueueSpec queue;
      queue.name = "cq-" + std::to_string(q) + "-" + root.name;
      queue.parent = root.name;
      queue.quota["rf"][0].nominal = 20'000;
      queue.quota["rf"][0].borrow = 100'000;
      const int32_t number = scenario.trace.Intern(queue.name);
      scenario.policy.default_queue = queue.name;
      scenario.policy.queues.push_back(queue);
      for (const KueueSet& set : shape.sets) {
        for (int i = 0; i < set.count; ++i) {
          TraceJob job;
          job.id = std::string(set.name) + "-" + std::to_string(i) + "-" + queue.name;
          job.queue = number;
          job.priority = set.priority;
          job.per_task[0] = set.cpu * 1000;
          job.submitted = Millis(set.interval_ms * (i + 1));
          job.run_time = Millis(set.run_ms);
          scenario.trace.jobs.push_back(std::move(job));
        }
      }
    }
  }
  std::stable_sort(scenario.trace.jobs.begin(), scenario.trace.jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submitted < b.submitted; });
  return scenario;
}

// Sizes of jobs, in GPUs, and their parts: most are small, most of the time goes to large ones.
constexpr std::pair<int, double> kSizes[] = {{1, 0.62}, {2, 0.12},   {4, 0.10},
                                             {8, 0.11}, {16, 0.035}, {32, 0.015}};
constexpr int kTeams = 10;
constexpr int64_t kGpusOfTeam = 32;

int DrawSize(Generator* generator) {
  double left = generator->Uniform();
  for (const auto& [size, part] : kSizes) {
    if (left < part) return size;
    left -= part;
  }
  return kSizes[0].first;
}

// Median 13 minutes, mean several hours: log-normal, longer for larger jobs.
Millis DrawRunTime(int gpus, Generator* generator) {
  const double median = 780 * std::pow(static_cast<double>(gpus), 0.4);
  const double seconds = median * std::exp(1.6 * generator->Normal());
  return Millis(std::llround(std::clamp(seconds, 10.0, 7 * 86'400.0) * 1000));
}

Scenario MakeCluster(int64_t jobs, uint64_t seed) {
  Generator generator(seed);
  Scenario scenario;
  Trace& trace = scenario.trace;
  scenario.policy = DefaultPolicy({"gpu"});
  scenario.policy.queues.clear();
  QueueSpec root;
  root.name = "cluster";
  scenario.policy.queues.push_back(root);
  for (int team = 0; team < kTeams; ++team) {
    QueueSpec queue;
    queue.name = "team-" + std::to_string(team);
    queue.parent = root.name;
    queue.quota["gpu"][2].nominal = kGpusOfTeam * 1000;
    scenario.policy.queues.push_back(queue);
  }
  scenario.policy.default_queue = "team-0";
  const int64_t gpus = kTeams * kGpusOfTeam;
  trace.machines.push_back({Millis(0), "gpu", {{kUnlimited, kUnlimited, gpus * 1000}}});
  std::vector<double> work;
  double total = 0;
  for (int64_t i = 0; i < jobs; ++i) {
    TraceJob job;
    job.id = "j" + std::to_string(i);
    // Teams and their users are unequally busy.
    const int team = std::min(kTeams - 1, static_cast<int>(generator.Exponential(3.0)));
    const int user = static_cast<int>(generator.Exponential(5.0));
    job.queue = trace.Intern("team-" + std::to_string(team));
    job.team = job.queue;
    job.user = trace.Intern("u" + std::to_string(team) + "-" + std::to_string(user));
    job.tasks = job.least = job.most = DrawSize(&generator);
    job.per_task[2] = 1000;
    job.run_time = DrawRunTime(job.tasks, &generator);
    // Two of three declare a limit, up to three times their run time.
    if (generator.Uniform() < 0.66) {
      const double factor = 1 + 2 * generator.Uniform();
      job.expected = Millis(std::llround(static_cast<double>(job.run_time.count()) * factor));
    }
    job.checkpoint = std::chrono::minutes(10);
    total += static_cast<double>(job.run_time.count()) * job.tasks;
    trace.jobs.push_back(std::move(job));
  }
  // Arrivals by day and night, at 95 % of the capacity on average.
  const double span = total / (0.95 * static_cast<double>(gpus));
  const double mean = span / static_cast<double>(std::max<int64_t>(jobs, 1));
  double at = 0;
  for (TraceJob& job : trace.jobs) {
    const double day = 2 * std::numbers::pi * at / 86'400'000;
    at += generator.Exponential(mean) / (1 + 0.6 * std::sin(day));
    job.submitted = Millis(std::llround(at));
  }
  return scenario;
}

}  // namespace

Result<Scenario> GenerateTrace(const std::string& shape, int64_t jobs, uint64_t seed) {
  if (shape == "cluster") return MakeCluster(jobs, seed);
  if (shape == "kueue-baseline")
    return MakeKueue({5,
                      6,
                      {{"small", 350, 100, 200, 50, 1},
                       {"medium", 100, 500, 500, 100, 5},
                       {"large", 50, 1200, 1000, 200, 20}}});
  if (shape == "kueue-large")
    return MakeKueue({10,
                      100,
                      {{"small", 33, 20, 50, 50, 1},
                       {"medium", 12, 50, 100, 100, 5},
                       {"large", 5, 200, 200, 200, 20}}});
  if (shape == "kueue-large-2026")
    return MakeKueue({20,
                      100,
                      {{"small", 20, 20, 50, 50, 1},
                       {"medium", 7, 50, 100, 100, 5},
                       {"large", 3, 200, 200, 200, 20}}});
  return NotFound("there is no shape '" + shape +
                  "'; expected cluster, kueue-baseline, kueue-large or kueue-large-2026");
}

}  // namespace shoal::queue
