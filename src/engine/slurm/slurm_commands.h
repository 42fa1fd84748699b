// Slurm as its commands are: sbatch, squeue, scancel, scontrol, sinfo. Their output is read in
// forms that all versions from 20.11 on have, bounded and checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::slurm {

struct QueuedJob {
  int64_t number = 0;
  std::string state;   // PENDING, RUNNING, …
  std::string reason;  // Resources, Priority, …; "None"
  std::string start;   // when it started or is expected to, "N/A"
  std::string nodes;
  std::string batch_host;  // where the batch script runs, or ran
  std::string work_dir;    // of a job of ours: its directory
  std::string comment;
  // Of a heterogeneous job, whose components are folded into its first: that one's nodes and batch
  // script; active while any of them is; why it waits, and until when, by what says most.
  bool heterogeneous = false;
  // Its first component waits or has ended while another one runs or has ended otherwise: as the
  // loss of a node leaves it (22.05, seen). It does not start again by itself.
  bool torn = false;
};

// The format for squeue, and what it gives. A line that is none of ours is passed over.
inline constexpr const char* kQueueFormat = "%i|%T|%r|%S|%N|%B|%Z|%k";
std::vector<QueuedJob> ParseQueue(std::string_view text);

// The active job of ours with this id: by the number under which it was submitted (0: not known),
// else by its comment. Null if there is none.
const QueuedJob* FindJob(const std::vector<QueuedJob>& queue, const std::string& job_id,
                         int64_t number);

// Whether a job in this state has, or may get, processes.
bool IsActive(const std::string& state);
// Whether its processes are stopped, until somebody has them go on.
bool IsSuspended(const std::string& state);
// Whether it waits in the queue.
bool IsPending(const std::string& state);

// Whether a job in this state was ended for reasons of the cluster's, not by its own time or
// people: batch jobs are then started again.
bool IsEndedBySlurm(const std::string& state);

// Whether it runs on without the node of its batch script. A job that outlives the death of a node
// (--no-kill) outlives that of its first, too (22.05, seen), which nobody then looks after.
bool HasLostBatchNode(const QueuedJob& job);

// "waits in Slurm's queue (job 7): Resources, which are in use by other jobs; expected to start at
// …"
std::string DescribeWait(const QueuedJob& job);

// How a job ended, from `scontrol --oneliner show job N`: a sentence's predicate.
struct EndedJob {
  std::string state;
  std::string reason;
  int exit_code = 0;
  int signal = 0;
  std::string node;  // of the batch script
};
Result<EndedJob> ParseEndedJob(std::string_view text);
std::string DescribeEnd(const EndedJob& job, const std::string& job_dir);

inline constexpr const char* kNodeFormat = "%N|%T|%c|%m|%G";
Capacity ParseNodes(std::string_view text);
// "gpu:2", "gpu:a100:4(S:0-1),shard:8" → 2, 4.
int CountGpus(std::string_view gres);

// "1-02:03:04", "5:00", "0:07" → seconds; nothing if there is no limit or it is not known.
std::optional<std::chrono::seconds> ParseTimeLeft(std::string_view text);

// The ports at which sruns of login nodes listen, where a firewall leaves only those open: of
// `scontrol show config`; first 0: any.
struct PortRange {
  int first = 0;
  int last = 0;
};
PortRange ParseSrunPorts(std::string_view text);
// The same of slurm.conf; nothing if that takes in other files.
std::optional<PortRange> SrunPortsOfFile(std::string_view text);

// Runs the commands. Thread-safe. Each error is one sentence.
class SlurmCommands {
 public:
  // `environment`: of the commands; jobs get it too.
  explicit SlurmCommands(std::vector<std::string> environment) : env_(std::move(environment)) {}

  // The number of the job.
  Result<int64_t> Submit(const std::string& script) const;
  // What is left of its time, where there is a limit.
  Result<std::optional<std::chrono::seconds>> TimeLeft(int64_t number) const;
  Result<PortRange> SrunPorts() const;
  // All jobs of this user, those that ended some minutes ago included.
  Result<std::vector<QueuedJob>> Queue() const;
  Result<EndedJob> ShowEnded(int64_t number) const;
  Status Cancel(int64_t number) const;
  // Ends it, to be started again. An error where its owner or the site does not allow that.
  Status Requeue(int64_t number) const;
  // A job that was put into the queue again may start at once.
  Status StartNow(int64_t number) const;
  Result<Capacity> Nodes() const;
  const std::vector<std::string>& environment() const { return env_; }

 private:
  Result<std::string> Run(const std::vector<std::string>& argv,
                          const std::string& input = "") const;
  const std::vector<std::string> env_;
};

}  // namespace shoal::engine::slurm
