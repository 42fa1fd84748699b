// queue_bench: the scheduler under the loads of Kueue's performance tests, in simulated time, and
// under a full cluster of 5,000 nodes with 10,000 waiting jobs. One JSON object a line;
// rates are by processor time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "queue/core/scheduler.h"
#include "queue/simulate/simulator.h"
#include "queue/simulate/trace.h"

namespace shoal::queue {
namespace {

using Clock = std::chrono::steady_clock;

// Processor time of this process: other load of the machine does not count.
double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Microseconds(std::vector<int64_t>* ns, double quantile) {
  if (ns->empty()) return 0;
  const auto at = static_cast<size_t>(quantile * static_cast<double>(ns->size() - 1));
  std::nth_element(ns->begin(), ns->begin() + static_cast<int64_t>(at), ns->end());
  return static_cast<double>((*ns)[at]) / 1000;
}

int RunShape(const std::string& shape, int64_t jobs, bool timed) {
  const Result<Scenario> scenario = GenerateTrace(shape, jobs, 1);
  if (!scenario.ok()) {
    std::fprintf(stderr, "%s\n", scenario.status().message().c_str());
    return 2;
  }
  SimulationOptions options;
  options.time_decisions = timed;
  const Clock::time_point begin = Clock::now();
  const double processor = ProcessorSeconds();
  Result<SimulationResult> result = Simulate(scenario->trace, scenario->policy, options);
  const double seconds = SecondsSince(begin);
  const double used = ProcessorSeconds() - processor;
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().message().c_str());
    return 1;
  }
  int64_t ended = 0;
  int64_t preempted = 0;
  double waited = 0;
  for (const JobOutcome& job : result->jobs) {
    ended += job.ended < kForever ? 1 : 0;
    preempted += job.preempted;
    waited += static_cast<double>(job.waited.count()) / 1000;
  }
  const auto count = static_cast<double>(result->jobs.size());
  std::printf(
      "{\"shape\":\"%s\",\"jobs\":%zu,\"ended\":%lld,\"preemptions\":%lld,\"seconds\":%.3f,"
      "\"processor_s\":%.3f,"
      "\"events\":%lld,\"events_per_s\":%.0f,\"decisions\":%lld,\"decisions_per_s\":%.0f,"
      "\"simulated_s\":%.1f,\"mean_wait_s\":%.1f",
      shape.c_str(), result->jobs.size(), static_cast<long long>(ended),
      static_cast<long long>(preempted), seconds, used, static_cast<long long>(result->events),
      static_cast<double>(result->events) / used, static_cast<long long>(result->decisions),
      static_cast<double>(result->decisions) / used,
      static_cast<double>(result->makespan.count()) / 1000, waited / count);
  if (timed)
    std::printf(",\"decide_p50_us\":%.1f,\"decide_p99_us\":%.1f,\"decide_max_us\":%.1f",
                Microseconds(&result->decide_ns, 0.5), Microseconds(&result->decide_ns, 0.99),
                Microseconds(&result->decide_ns, 1));
  std::printf("}\n");
  return 0;
}

// A full cluster: each end of a job frees something for which 10,000 jobs wait in 100 queues of 10
// cohorts, with gangs, shares with history, borrowing, preemption and backfill.
class FullCluster {
 public:
  FullCluster() : scheduler_(MakePolicy(), Machines()) {}

  int Run(int ends);

 private:
  static constexpr int kNodes = 5000;
  static constexpr int kGpus = 8;  // of a node
  static constexpr int kCohorts = 10;
  static constexpr int kQueues = 10;  // of a cohort
  static constexpr int kWaiting = 10'000;

  static Policy MakePolicy();
  static std::map<std::string, FlavorMachines> Machines();
  int64_t Below(int64_t bound) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(bound));
  }
  void Submit();
  void Decide();

  Scheduler scheduler_;
  Millis now_{0};
  int64_t count_ = 0;
  int64_t decisions_ = 0;
  uint64_t state_ = 7;
  std::vector<JobRef> running_;
  std::vector<int64_t> ns_;
};

Policy FullCluster::MakePolicy() {
  Policy policy = DefaultPolicy({"gpu"});
  policy.queues.clear();
  for (int c = 0; c < kCohorts; ++c) {
    QueueSpec cohort;
    cohort.name = "c" + std::to_string(c);
    policy.queues.push_back(cohort);
    for (int q = 0; q < kQueues; ++q) {
      QueueSpec queue;
      queue.name = cohort.name + "-q" + std::to_string(q);
      queue.parent = cohort.name;
      queue.quota["gpu"][2].nominal = int64_t{kNodes} * kGpus * 1000 / (kCohorts * kQueues);
      queue.weight = 1 + q % 3;
      policy.queues.push_back(queue);
    }
  }
  policy.default_queue = "c0-q0";
  return policy;
}

std::map<std::string, FlavorMachines> FullCluster::Machines() {
  FlavorMachines machines;
  machines.total[2] = int64_t{kNodes} * kGpus * 1000;
  machines.largest_node[2] = kGpus * 1000;
  return {{"gpu", machines}};
}

void FullCluster::Submit() {
  JobSpec spec;
  spec.id = "j" + std::to_string(count_);
  spec.order = count_++;
  const int64_t queue = std::min(Below(kQueues), Below(kQueues));  // unequally busy
  spec.queue = "c" + std::to_string(Below(kCohorts)) + "-q" + std::to_string(queue);
  spec.user = "u" + std::to_string(Below(500));
  spec.priority = static_cast<int32_t>(Below(20) == 0 ? 10 : 0);
  const int64_t sizes[] = {1, 1, 1, 2, 4, 8, 16, 64};
  spec.request.unit[2] = 1000;
  spec.request.least = spec.request.most = static_cast<int32_t>(sizes[Below(8)]);
  spec.request.largest_task[2] = 1000;
  if (Below(3) != 0) spec.run_time = Millis(60'000 * (1 + Below(600)));
  if (!scheduler_.Submit(std::move(spec), now_).ok()) std::abort();
}

void FullCluster::Decide() {
  const Clock::time_point begin = Clock::now();
  const std::vector<Decision>& decisions = scheduler_.Decide(now_);
  ns_.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  decisions_ += static_cast<int64_t>(decisions.size());
  std::vector<JobRef> stopping;
  for (const Decision& decision : decisions) {
    if (decision.action == Action::kAdmit) running_.push_back(decision.job);
    if (decision.action == Action::kPreempt) stopping.push_back(decision.job);
  }
  for (const JobRef job : stopping) {
    std::erase(running_, job);
    scheduler_.Requeue(job, RequeueCause::kPreempted, now_);
  }
}

int FullCluster::Run(int ends) {
  while (scheduler_.state().arenas().capacity(0).held[2] <
         scheduler_.state().arenas().capacity(0).total[2] * 99 / 100) {
    Submit();
    Decide();
  }
  for (int i = 0; i < kWaiting; ++i) Submit();
  Decide();
  ns_.clear();
  decisions_ = 0;
  const Clock::time_point begin = Clock::now();
  const double processor = ProcessorSeconds();
  for (int i = 0; i < ends; ++i) {
    now_ += Millis(1000);
    const auto at = static_cast<size_t>(Below(static_cast<int64_t>(running_.size())));
    scheduler_.End(running_[at], now_);
    running_[at] = running_.back();
    running_.pop_back();
    Decide();
    Submit();
    Decide();
  }
  const double seconds = SecondsSince(begin);
  const double used = ProcessorSeconds() - processor;
  size_t waiting = 0;
  for (size_t n = 0; n < scheduler_.state().tree().nodes().size(); ++n)
    waiting += scheduler_.state().lanes().Waiting(static_cast<NodeIndex>(n));
  std::printf(
      "{\"shape\":\"full-cluster\",\"nodes\":%d,\"running\":%zu,\"waiting\":%zu,\"events\":%d,"
      "\"seconds\":%.3f,\"processor_s\":%.3f,\"decisions\":%lld,\"decisions_per_s\":%.0f,\"events_"
      "per_s\":%.0f,"
      "\"decide_p50_us\":%.1f,\"decide_p99_us\":%.1f,\"decide_max_us\":%.1f}\n",
      kNodes, running_.size(), waiting, 2 * ends, seconds, used, static_cast<long long>(decisions_),
      static_cast<double>(decisions_) / used, 2 * ends / used, Microseconds(&ns_, 0.5),
      Microseconds(&ns_, 0.99), Microseconds(&ns_, 1));
  return 0;
}

}  // namespace
}  // namespace shoal::queue

// queue_bench [SHAPE [JOBS]]: "full-cluster", or a shape of GenerateTrace; all without arguments.
int main(int argc, char** argv) {
  const std::string shape = argc > 1 ? argv[1] : "all";
  const int64_t jobs = argc > 2 ? std::atoll(argv[2]) : 0;
  if (shape == "full-cluster")
    return shoal::queue::FullCluster().Run(jobs > 0 ? static_cast<int>(jobs) : 20'000);
  if (shape != "all") return shoal::queue::RunShape(shape, jobs > 0 ? jobs : 200'000, jobs == 0);
  int failed = shoal::queue::FullCluster().Run(20'000);
  for (const char* const one : {"kueue-baseline", "kueue-large", "kueue-large-2026"})
    failed |= shoal::queue::RunShape(one, 0, true);
  failed |= shoal::queue::RunShape("cluster", 200'000, false);
  return failed;
}
