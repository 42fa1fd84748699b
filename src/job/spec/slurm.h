// The part of a job that only Slurm looks at.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace shoal::job {

// Which nodes are asked for. Of a role: in place of what the job's Slurm has, each where it says
// something; roles that ask for other things than others are components of their own of one
// heterogeneous allocation (docs/engines/slurm.md).
struct SlurmSettings {
  std::string partition;
  std::string account;
  std::string qos;
  std::string constraint;
  std::string reservation;
  std::string gpu_type;
  int nodes = 0;                     // 0: as Slurm likes; a role's are its component's
  std::vector<std::string> options;  // of sbatch, as they are

  bool operator==(const SlurmSettings&) const = default;
};

// What a job asks of Slurm beyond its tasks' resources (docs/engines/slurm.md). Other engines
// ignore it.
struct Slurm : SlurmSettings {
  std::chrono::milliseconds time{0};               // of the allocation; 0: the partition's
  std::chrono::milliseconds save_before{120'000};  // before that time is over
  bool requeue = true;  // after the loss of a node or the end of the time the job starts again
  bool exclusive = false;

  bool operator==(const Slurm&) const = default;
};

}  // namespace shoal::job
