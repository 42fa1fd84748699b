// FIFO admission with gang scheduling.
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "queue/admission.h"

namespace shoal::queue {
namespace {

constexpr int kKinds = 3;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

using Amounts = std::array<int64_t, kKinds>;  // millicores, bytes, devices

Amounts Of(const Demand& demand) {
  return {std::max<int64_t>(demand.cpu_milli, 0), std::max<int64_t>(demand.memory_bytes, 0),
          std::max<int64_t>(demand.gpu, 0)};
}

Amounts Of(const Capacity& capacity) {
  return {capacity.cpu_milli.value_or(kUnlimited), capacity.memory_bytes.value_or(kUnlimited),
          capacity.gpu.value_or(kUnlimited)};
}

// "1.5 CPU", "2 GiB memory", "1 GPU".
std::string Tell(int kind, int64_t amount) {
  char buffer[64];
  if (kind == 0) {
    std::snprintf(buffer, sizeof buffer, "%.6g CPU", static_cast<double>(amount) / 1000);
  } else if (kind == 2) {
    std::snprintf(buffer, sizeof buffer, "%lld GPU", static_cast<long long>(amount));
  } else if (amount >= int64_t{1} << 30) {
    std::snprintf(buffer, sizeof buffer, "%.4g GiB memory",
                  static_cast<double>(amount) / static_cast<double>(int64_t{1} << 30));
  } else {
    std::snprintf(buffer, sizeof buffer, "%.4g MiB memory",
                  static_cast<double>(amount) / static_cast<double>(int64_t{1} << 20));
  }
  return buffer;
}

// The first kind of resource that is insufficient, or -1.
int Lacking(const Amounts& wanted, const Amounts& there) {
  for (int kind = 0; kind < kKinds; ++kind) {
    const auto k = static_cast<size_t>(kind);
    if (wanted[k] > there[k]) return kind;
  }
  return -1;
}

void Take(const Amounts& amounts, Amounts* free) {
  for (size_t kind = 0; kind < kKinds; ++kind) {
    if ((*free)[kind] == kUnlimited) continue;
    (*free)[kind] -= std::min((*free)[kind], amounts[kind]);
  }
}

// "text8 (2 GPU) and 3 others": the jobs that hold most of a resource.
std::string Holders(const std::vector<RunningJob>& running, int kind) {
  const auto k = static_cast<size_t>(kind);
  const RunningJob* most = nullptr;
  int holders = 0;
  for (const RunningJob& job : running) {
    const int64_t held = Of(job.demand)[k];
    if (held == 0) continue;
    ++holders;
    if (most == nullptr || held > Of(most->demand)[k]) most = &job;
  }
  if (most == nullptr) return {};
  std::string text = most->name + " (" + most->id + ") holds " + Tell(kind, Of(most->demand)[k]);
  if (holders > 1) {
    text += " and " + std::to_string(holders - 1) + (holders == 2 ? " other job" : " other jobs");
    text += " the rest";
  }
  return text;
}

class Fifo final : public Admission {
 public:
  std::string name() const override { return "fifo"; }
  SnapshotDecision Decide(const Snapshot& snapshot) const override;
};

std::string WhyRefused(const WaitingJob& job, int kind, const Amounts& capacity) {
  const auto k = static_cast<size_t>(kind);
  return job.name + " can never start here: all its tasks together ask for " +
         Tell(kind, Of(job.demand)[k]) + ", and there is " + Tell(kind, capacity[k]) +
         " in all; ask for less or for fewer replicas";
}

std::string WhyWaits(const WaitingJob& job, int kind, const Amounts& free,
                     const std::vector<RunningJob>& holders) {
  const auto k = static_cast<size_t>(kind);
  std::string text = "first in line; needs " + Tell(kind, Of(job.demand)[k]) + " and " +
                     Tell(kind, free[k]) + " is free";
  const std::string who = Holders(holders, kind);
  return who.empty() ? text : text + ": " + who;
}

SnapshotDecision Fifo::Decide(const Snapshot& snapshot) const {
  std::vector<const WaitingJob*> line;
  for (const WaitingJob& job : snapshot.waiting) line.push_back(&job);
  std::sort(line.begin(), line.end(), [](const WaitingJob* a, const WaitingJob* b) {
    return a->order != b->order ? a->order < b->order : a->id < b->id;
  });
  const Amounts capacity = Of(snapshot.capacity);
  Amounts free = capacity;
  for (const RunningJob& job : snapshot.running) Take(Of(job.demand), &free);

  SnapshotDecision decision;
  std::vector<RunningJob> holders = snapshot.running;
  const WaitingJob* head = nullptr;
  int ahead = 0;
  for (const WaitingJob* job : line) {
    const Amounts wanted = Of(job->demand);
    if (const int kind = Lacking(wanted, capacity); kind >= 0) {
      decision.rejected[job->id] = WhyRefused(*job, kind, capacity);
      continue;
    }
    if (head != nullptr) {
      decision.pending_reasons[job->id] =
          "behind " + head->name + " (" + head->id + "), which is first in line" +
          (ahead > 1 ? "; " + std::to_string(ahead) + " jobs are before it" : "");
      ++ahead;
      continue;
    }
    const int kind = Lacking(wanted, free);
    if (kind < 0) {
      Take(wanted, &free);
      decision.admit.push_back(job->id);
      holders.push_back({job->id, job->name, job->demand});
      continue;
    }
    decision.pending_reasons[job->id] = WhyWaits(*job, kind, free, holders);
    head = job;
    ahead = 1;
  }
  return decision;
}

}  // namespace

std::unique_ptr<Admission> MakeFifoAdmission() { return std::make_unique<Fifo>(); }

}  // namespace shoal::queue
