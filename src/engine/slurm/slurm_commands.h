// Slurm's commands: sbatch, squeue, scancel, scontrol, sinfo. Their output is requested in formats
// that all versions from 20.11 on support, and is parsed with bounds and checks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/access/directory_owner.h"
#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::slurm {

// An entry of Slurm's queue.
struct QueuedJob {
  int64_t number = 0;
  std::string state;   // PENDING, RUNNING, …
  std::string reason;  // Resources, Priority, …; "None"
  std::string start;   // start time, actual or expected; "N/A"
  std::string nodes;
  std::string batch_host;  // node of the batch script
  std::string work_dir;    // of a Shoal job: its directory
  std::string comment;
  uid_t user = 0;  // whose job it is
  // The entry combines the components of a heterogeneous job: nodes and batch script are the first
  // component's, the state is active while any component is active, and reason and start come from
  // the component that says most.
  bool heterogeneous = false;
  // The first component is pending or ended while another one is in a different state. The loss of
  // a node can cause this (seen with 22.05). Slurm does not repair it.
  bool torn = false;
};

// The format for squeue and its parser. Lines that are malformed are skipped.
inline constexpr const char* kQueueFormat = "%i|%T|%r|%S|%N|%B|%Z|%k";
std::vector<QueuedJob> ParseQueue(std::string_view text);

// The active Slurm job of the Shoal job `job_id`: by Slurm's number if known (not 0), else by its
// comment. Null if there is none.
const QueuedJob* FindJob(const std::vector<QueuedJob>& queue, const std::string& job_id,
                         int64_t number);

// Whether a job in this state has processes or may get some.
bool IsActive(const std::string& state);
// Whether the processes of a job in this state are suspended.
bool IsSuspended(const std::string& state);
// Whether a job in this state waits in the queue.
bool IsPending(const std::string& state);

// Whether a job in this state was ended by the cluster (node failure, preemption), not by its time
// limit or a user. Slurm requeues batch jobs in that case.
bool IsEndedBySlurm(const std::string& state);

// Whether the job runs on although the node of its batch script failed. With --no-kill Slurm keeps
// such a job running without an agent (seen with 22.05).
bool HasLostBatchNode(const QueuedJob& job);

// "waits in Slurm's queue (job 7): Resources, which are in use by other jobs; expected to start at
// …"
std::string DescribeWait(const QueuedJob& job);

// How a job ended, from `scontrol --oneliner show job N`.
struct EndedJob {
  std::string state;
  std::string reason;
  int exit_code = 0;
  int signal = 0;
  std::string node;  // node of the batch script
};
Result<EndedJob> ParseEndedJob(std::string_view text);
std::string DescribeEnd(const EndedJob& job, const std::string& job_dir);

inline constexpr const char* kNodeFormat = "%N|%T|%c|%m|%G";
Capacity ParseNodes(std::string_view text);
// "gpu:2", "gpu:a100:4(S:0-1),shard:8" → 2, 4.
int CountGpus(std::string_view gres);

// "1-02:03:04", "5:00", "0:07" → seconds; nothing if there is no limit or it is unknown.
std::optional<std::chrono::seconds> ParseTimeLeft(std::string_view text);

// SrunPortRange of `scontrol show config`: the ports on which srun listens on login nodes with a
// firewall. first 0: any port.
struct PortRange {
  int first = 0;
  int last = 0;
};
PortRange ParseSrunPorts(std::string_view text);
// SrunPortRange of slurm.conf; nothing if the file includes other files.
std::optional<PortRange> SrunPortsOfFile(std::string_view text);

// Runs the commands, as this process's user or another one: Slurm then gives them no right but that
// user's, and options of a job file cannot name a third. Thread-safe; all methods block. Errors are
// one sentence each: Unavailable if Slurm's controller does not answer.
class SlurmCommands {
 public:
  // `environment`: of the commands, and through sbatch of the jobs.
  explicit SlurmCommands(std::vector<std::string> environment) : env_(std::move(environment)) {}
  // These commands as the owner of a job's directory, if it is not this process's user.
  SlurmCommands For(const std::optional<UserIds>& owner, const std::string& job_dir) const;

  // Submits a batch script; returns Slurm's job id.
  Result<int64_t> Submit(const std::string& script) const;
  // Time until the job's time limit; nothing if it has none.
  Result<std::optional<std::chrono::seconds>> TimeLeft(int64_t number) const;
  Result<PortRange> SrunPorts() const;
  // All jobs of this user, including those that ended in the last minutes.
  Result<std::vector<QueuedJob>> Queue() const;
  Result<EndedJob> ShowEnded(int64_t number) const;
  Status Cancel(int64_t number) const;
  // Requeues a running job. An error if its owner or the site does not permit that.
  Status Requeue(int64_t number) const;
  // Removes the begin time that Slurm gives to a requeued job.
  Status StartNow(int64_t number) const;
  Result<Capacity> Nodes() const;
  const std::vector<std::string>& environment() const { return env_; }

 private:
  Result<std::string> Run(const std::vector<std::string>& argv,
                          const std::string& input = "") const;
  std::vector<std::string> env_;
  std::optional<UserIds> user_;  // none: this process's
};

}  // namespace shoal::engine::slurm
