// Settings of a job for Slurm.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace shoal::job {

// Node selection. Settings of a role replace the job's settings field by field; roles with
// different settings become components of one heterogeneous allocation (docs/engines/slurm.md).
struct SlurmSettings {
  std::string partition;
  std::string account;
  std::string qos;
  std::string constraint;
  std::string reservation;
  std::string gpu_type;
  int nodes = 0;                     // 0: chosen by Slurm; for a role: of its component
  std::vector<std::string> options;  // passed to sbatch unchanged

  bool operator==(const SlurmSettings&) const = default;
};

// Slurm settings of a job besides its tasks' resources (docs/engines/slurm.md). Other engines
// ignore them.
struct Slurm : SlurmSettings {
  std::chrono::milliseconds time{0};  // time limit of the allocation; 0: the partition's default
  std::chrono::milliseconds save_before{120'000};  // time before the limit at which the tasks save
  bool requeue = true;  // restart the job after the loss of a node or the end of its time
  bool exclusive = false;

  bool operator==(const Slurm&) const = default;
};

}  // namespace shoal::job
