// The environment of a training task (SHOAL_… variables) and its reports: progress and results on
// the report pipe, requests to stop by SIGTERM.
//
// Made by RunTask (algorithm.cc) from the process's environment, by tests from a map.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "base/status.h"
#include "job/spec/job.h"
#include "learn/coordination/reporter.h"
#include "learn/data_locality/data_cache.h"
#include "ps/members.h"

namespace shoal::learn {

using Environment = std::map<std::string, std::string>;

// The members of a job, from the cluster description in SHOAL_CLUSTER_FILE, which is read again
// when the file changes, or else in SHOAL_CLUSTER. Thread-safe.
class FileMembers final : public ps::Members {
 public:
  // FailedPrecondition if neither is set; InvalidArgument if the text is not a cluster description.
  static Result<std::unique_ptr<FileMembers>> Make(const Environment& env);
  ps::MemberView Current() override;
  // Workers that have ended successfully according to the coordinator, ascending.
  std::vector<int> EndedWorkers();
  // True if a worker is present that has not ended successfully, and the job is not ending.
  bool HasLiveWorkers();
  // True if the job is being stopped, or its result is decided.
  bool IsJobEnding();

 private:
  struct View {
    ps::MemberView members;
    std::vector<int> ended;
    int workers_there = 0;
    bool ending = false;
  };
  FileMembers(std::filesystem::path file, View view)
      : file_(std::move(file)), view_(std::move(view)) {}
  static Result<View> ViewOf(const std::string& text);
  void Refresh() REQUIRES(mu_);
  struct Stamp {
    int64_t mtime_ns = 0;
    uint64_t inode = 0;
    bool operator==(const Stamp&) const = default;
  };
  const std::filesystem::path file_;  // empty: constant description
  Mutex mu_;
  View view_ GUARDED_BY(mu_);
  Stamp stamp_ GUARDED_BY(mu_);
};

// One task of a training job. Constant after Make, except for the stop flags.
class Task {
 public:
  // InvalidArgument names a missing or malformed variable.
  static Result<std::unique_ptr<Task>> Make(std::string role, const Environment& env);

  std::string role;
  int index = 0;
  int workers = 1;
  int servers = 0;
  int initial_servers = 0;      // of an elastic role server, when all tasks last began; else 0
  int server_copies = 1;        // replicas of each row
  bool ucx = false;             // workers connect to servers over UCX
  DataCacheOptions data_cache;  // learn.cache_data
  int workers_on_this_host = 1;
  double cpus = 0;   // resources.cpu of its role; 0: none
  double cores = 1;  // available to this process by affinity and control-group quotas
  int attempt = 0;
  // The incarnation of this process: 0 for the first of a job, and growing with every start of the
  // task, also after the task had left and returned.
  int64_t life = 0;
  // Above the number of moves of a shard before this start of a server that is alone.
  uint32_t takeover_epoch() const;
  std::string host = "127.0.0.1";  // address of this task for others
  uint16_t port = 0;
  std::string token;
  std::filesystem::path job_dir;  // may be empty
  std::filesystem::path scratch;  // an existing directory
  std::filesystem::path output;   // of outputs.model; may be empty
  std::map<std::string, job::LearnValue> learn;
  std::vector<std::string> sources;   // of all data entries, in order
  std::vector<job::DataSource> data;  // all entries, in order
  std::chrono::milliseconds checkpoint_every{0};
  int checkpoint_keep = 2;
  std::filesystem::path checkpoint_dir;  // empty: no checkpoints

  // The default number of threads: the role's resources.cpu, limited by the available cores;
  // without it, the machine's cores divided by the workers on it. At least 1.
  int64_t DefaultThreads() const;
  ps::Members& members() const { return *members_; }
  // As FileMembers. Thread-safe.
  std::vector<int> EndedWorkers() const { return members_->EndedWorkers(); }
  bool HasLiveWorkers() const { return members_->HasLiveWorkers(); }
  bool IsJobEnding() const { return members_->IsJobEnding(); }
  const Reporter& reporter() const { return reporter_; }
  // Set when the task has to finish its current step, save and end. By any thread, and by signal
  // handlers.
  std::atomic<bool> stop{false};
  // The signal that set it; 0: none.
  std::atomic<int> stop_signal{0};
  // The role's body ended early because of `stop`. Unless the job is ending, the process then ends
  // by that signal, like a program without a handler, so that the task counts as lost.
  bool cut_short = false;

 private:
  explicit Task(int report_fd) : reporter_(report_fd) {}
  Status ReadCluster(const Environment& env);
  Status ReadDescriptions(const Environment& env);
  std::unique_ptr<FileMembers> members_;
  Reporter reporter_;
};

}  // namespace shoal::learn
