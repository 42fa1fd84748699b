// A thread that follows one job's pods: list, then watch from there on, again from the list when
// the cluster has forgotten where that was; and what the engine's calls need to know of them.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/kubernetes/job_state.h"
#include "engine/kubernetes/kube_client.h"
#include "engine/kubernetes/objects.h"

namespace shoal::engine::kubernetes {

// Thread-safe.
class PodInformer {
 public:
  struct Options {
    std::string job_id;
    std::string name_space;
    const KubeClient* client = nullptr;  // outlives the follower
    const Clock* clock = nullptr;
    RestartRules restart;
  };
  using Tell = std::function<void(std::vector<TaskEvent>)>;

  PodInformer(Options options, Tell tell);
  ~PodInformer() { End(); }

  // Looks for what exists of the job; false if there is nothing.
  Result<bool> Adopt();
  // Begins to follow; again is nothing.
  void Start();
  // Joins the thread. Not from within `tell`.
  void End();

  void Want(const DesiredJob& desired, const JobChanges& changes);
  void Made(const JobView& job);
  void Stopping();
  bool stopping() const;
  std::vector<JobView> jobs() const;
  std::map<TaskKey, KnownTask> Known() const;
  // The coordinator's Job, if there is one.
  Owner owner() const;
  std::vector<TaskStatus> List() const;
  std::optional<PodView> PodOf(const std::string& role, int index) const;
  // The last bytes of its container's log; empty if it has none.
  Result<std::string> Log(const std::string& role, int index, size_t limit) const;
  // Until the last pod is gone from the cluster. DeadlineExceeded; Cancelled by Interrupt.
  Status AwaitNoPods(std::chrono::milliseconds patience);
  void Interrupt();

 private:
  void Follow();
  Status ListAll(std::string* version);
  Status WatchOn(std::string* version);
  // Reads what a watch says until it ends.
  Status Read(net::HttpStream* stream, std::string* version);
  Status Take(const std::string& line, std::string* version);
  void Look();  // at what no watch of pods tells
  bool AreRemoved() const;
  bool Sleep(std::chrono::milliseconds time);
  // Of a pod that has ended, if they may be needed.
  std::string ReadLogTail(const PodView& pod) const;
  std::string PodsPath() const;

  const Options options_;
  const Tell tell_;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  JobState state_;                           // guarded by mu_
  std::shared_ptr<net::HttpStream> stream_;  // guarded by mu_
  bool ending_ = false;                      // guarded by mu_
  int interrupts_ = 0;                       // guarded by mu_
  bool listed_ = false;                      // guarded by mu_: once
  std::set<std::string> present_;            // guarded by mu_: uids of pods, ended or not
  TimePoint looked_{};                       // of the thread
  std::mutex thread_mu_;
  std::thread thread_;  // guarded by thread_mu_
};

}  // namespace shoal::engine::kubernetes
