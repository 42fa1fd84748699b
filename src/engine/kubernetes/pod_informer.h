// Follows one job's pods on its own thread by list and watch, as informers of Kubernetes clients
// do: lists the pods, watches from that version on, and lists again when the version has expired.
// Keeps the state that the engine's methods need.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
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
    const KubeClient* client = nullptr;  // outlives the informer
    const Clock* clock = nullptr;
    RestartRules restart;
  };
  using EventCallback = std::function<void(std::vector<TaskEvent>)>;

  PodInformer(Options options, EventCallback on_events);
  ~PodInformer() { End(); }

  // Lists the job's objects and restores its state; false if there are none.
  Result<bool> Adopt();
  // Starts the thread; has no effect if it runs.
  void Start();
  // Joins the thread. Must not be called from `on_events`.
  void End();

  void SetDesired(const DesiredJob& desired, const JobChanges& changes);
  void AddJob(const JobView& job);
  void Stopping();
  bool stopping() const;
  std::vector<JobView> jobs() const;
  std::map<TaskKey, KnownTask> KnownTasks() const;
  // The coordinator's Job, if there is one.
  Owner owner() const;
  std::vector<TaskStatus> List() const;
  std::optional<PodView> PodOf(const std::string& role, int index) const;
  // The last `limit` bytes of the container's log; empty if it has none.
  Result<std::string> Log(const std::string& role, int index, size_t limit) const;
  // Waits until no pod of the job exists. DeadlineExceeded; Cancelled by Interrupt.
  Status AwaitNoPods(std::chrono::milliseconds patience);
  void Interrupt();

 private:
  void Follow();
  Status ListAll(std::string* version);
  Status WatchOn(std::string* version);
  // Reads a watch stream until it ends.
  Status Read(net::HttpStream* stream, std::string* version);
  Status ApplyLine(const std::string& line, std::string* version);
  void PollJobs();  // polls the state that a watch of pods does not report
  bool AreRemoved() const;
  bool Sleep(std::chrono::milliseconds time);
  // Log tail of a pod that has ended, if it may be needed.
  std::string ReadLogTail(const PodView& pod) const;
  std::string PodsPath() const;

  const Options options_;
  const EventCallback on_events_;
  mutable Mutex mu_;
  CondVar changed_;
  JobState state_ GUARDED_BY(mu_);
  std::shared_ptr<net::HttpStream> stream_ GUARDED_BY(mu_);
  bool ending_ GUARDED_BY(mu_) = false;
  int interrupts_ GUARDED_BY(mu_) = 0;
  bool listed_ GUARDED_BY(mu_) = false;            // once
  std::set<std::string> present_ GUARDED_BY(mu_);  // uids of pods, ended or not
  TimePoint looked_{};                             // used by the thread only
  Mutex thread_mu_;
  std::thread thread_ GUARDED_BY(thread_mu_);
};

}  // namespace shoal::engine::kubernetes
