// What a task of a trainer is told by its launcher (the SHOAL_… environment) and how it answers:
// progress and results on the report pipe, the wish to stop by SIGTERM.
//
// Made by RunTask (algorithm.cc) from the real environment, by tests from a map.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "job/spec/job.h"
#include "learn/coordination/reporter.h"
#include "learn/data_locality/data_cache.h"
#include "ps/members.h"

namespace shoal::learn {

using Environment = std::map<std::string, std::string>;

// The cluster description as the parameter server's client wants it: the servers' addresses from
// SHOAL_CLUSTER_FILE, read again when the file has changed, else from SHOAL_CLUSTER.
class FileMembers final : public ps::Members {
 public:
  // FailedPrecondition if neither is there; InvalidArgument if it is not a cluster description.
  static Result<std::unique_ptr<FileMembers>> Make(const Environment& env);
  ps::MemberView Current() override;
  // Workers that ended well, for good, by what the coordinator last said; ascending.
  std::vector<int> EndedWorkers();
  // Whether some worker is there that has not ended well, and the job is not ending either.
  bool HasLiveWorkers();
  // Whether the job is being stopped, or its verdict is decided.
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
  void Refresh();
  struct Stamp {
    int64_t mtime_ns = 0;
    uint64_t inode = 0;
    bool operator==(const Stamp&) const = default;
  };
  const std::filesystem::path file_;  // empty: the description never changes
  std::mutex mu_;
  View view_;    // guarded by mu_
  Stamp stamp_;  // guarded by mu_
};

// Constant after Make, except `stop`.
class Task {
 public:
  // InvalidArgument names the variable that is missing or malformed.
  static Result<std::unique_ptr<Task>> Make(std::string role, const Environment& env);

  std::string role;
  int index = 0;
  int workers = 1;
  int servers = 0;
  int server_copies = 1;        // servers that have each row
  bool ucx = false;             // workers reach servers over UCX
  DataCacheOptions data_cache;  // learn.cache_data
  int workers_on_this_host = 1;
  double cpus = 0;   // resources.cpu of its role; 0: not said
  double cores = 1;  // that this process may run on: affinity, and quotas of control groups
  int attempt = 0;
  // Of this program: 0 for the first of a job, and growing with every start of its task, also after
  // the task had left and has come back.
  int64_t life = 0;
  std::string host = "127.0.0.1";  // of this task, as others reach it
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

  // Cores that this worker may use: its role's resources.cpu as far as they are there; without, the
  // machine's, shared among the workers on it. At least 1.
  int64_t DefaultThreads() const;
  ps::Members& members() const { return *members_; }
  // As FileMembers. Thread-safe.
  std::vector<int> EndedWorkers() const { return members_->EndedWorkers(); }
  bool HasLiveWorkers() const { return members_->HasLiveWorkers(); }
  bool IsJobEnding() const { return members_->IsJobEnding(); }
  const Reporter& reporter() const { return reporter_; }
  // Becomes true when the task shall finish what it is at, save and end. Any thread, signal
  // handlers too.
  std::atomic<bool> stop{false};
  // The signal that said so; 0: none.
  std::atomic<int> stop_signal{0};
  // The role's body has ended before its part was done, because of `stop`. Unless the job is
  // ending, the process then ends by that signal, as a program without a handler does: it is a
  // loss.
  bool cut_short = false;

 private:
  explicit Task(int report_fd) : reporter_(report_fd) {}
  Status ReadCluster(const Environment& env);
  Status ReadDescriptions(const Environment& env);
  std::unique_ptr<FileMembers> members_;
  Reporter reporter_;
};

}  // namespace shoal::learn
