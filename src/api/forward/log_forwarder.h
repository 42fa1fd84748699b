// Sends the lines of all jobs to one receiver, from the log files: each log has an offset up to
// which its lines have been sent, kept in the store, so that a receiver that is away or a server
// that ends loses nothing, and what waits costs no memory (ADR 292).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/forward/log_sink.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/files/log_store.h"
#include "controller/files/state_home.h"
#include "controller/store/store.h"

namespace shoal::api {

struct LogForwarderOptions {
  ForwarderConfig config;
  std::unique_ptr<LogSink> sink;
  controller::Store* store = nullptr;  // must outlive it, as must the clock
  controller::StateHome home{std::filesystem::path()};
  const Clock* clock = nullptr;
};

struct LogForwarderCounters {
  uint64_t lines = 0;      // that have arrived
  uint64_t bytes = 0;      // of them
  uint64_t failures = 0;   // batches that failed, in part or as a whole
  uint64_t rejected = 0;   // lines that the receiver does not take
  uint64_t lost_logs = 0;  // logs that were removed before all of their lines were sent
  uint64_t jobs = 0;       // now: with lines that may not have been sent
  bool failing = false;    // now
};

// One thread. Thread-safe.
class LogForwarder {
 public:
  // Lines and bytes of a batch, the most that is in memory.
  static constexpr size_t kBatchLines = 2000;
  static constexpr size_t kBatchBytes = size_t{1} << 20;

  static Result<std::unique_ptr<LogForwarder>> Start(LogForwarderOptions options);
  // A batch that is being sent is broken off, and sent again by the next one.
  ~LogForwarder();
  LogForwarder(const LogForwarder&) = delete;
  LogForwarder& operator=(const LogForwarder&) = delete;

  // A log of the job has grown. Cheap; from any thread.
  void Grew(const std::string& job);

  const std::string& name() const { return options_.config.name; }
  LogForwarderCounters counters() const;

 private:
  struct Job {
    ForwardLine prototype;  // what all lines of the job have in common
    bool ended = false;
    std::map<controller::LogKey, int64_t> offsets;  // sent up to here
    bool changed = false;                           // since it was stored
  };
  struct Batch {
    std::vector<ForwardLine> lines;
    size_t bytes = 0;
    // Offsets once the batch has been sent.
    std::map<std::pair<std::string, controller::LogKey>, int64_t> reaches;
    std::set<std::string> finished;  // ended jobs of which nothing is left after it
    bool full() const { return lines.size() >= kBatchLines || bytes >= kBatchBytes; }
  };
  explicit LogForwarder(LogForwarderOptions options) : options_(std::move(options)) {}
  Status Load();
  void Run();
  bool stopping();
  // Until something happens, or `most` has passed.
  void Wait(Duration most);
  Status ReadEvents();
  Status AddJob(const std::string& id);
  void Fill(Batch* batch);
  // False if more is there than the batch takes.
  bool FillFrom(const std::string& id, Job* job, Batch* batch);
  bool FillLog(const std::string& id, Job* job, const controller::LogInfo& log, Batch* batch);
  // False if the forwarder ends meanwhile.
  bool Deliver(const Batch& batch);
  void Advance(const Batch& batch);
  // False if the forwarder ends meanwhile.
  bool Pause(Duration time);
  void Save(bool all);
  Status Forget(const std::string& id);

  LogForwarderOptions options_;
  UniqueFd interrupt_;  // readable once it ends
  Mutex mu_;
  CondVar changed_;
  bool stop_ GUARDED_BY(mu_) = false;
  bool news_ GUARDED_BY(mu_) = true;             // events, or dirty_
  std::set<std::string> dirty_ GUARDED_BY(mu_);  // jobs whose logs have grown
  // Of the thread.
  std::map<std::string, Job> jobs_;
  std::set<std::string> waiting_;  // jobs with bytes that were not read
  std::string turn_;               // the one that filled a batch last
  int64_t position_ = 0;           // in the events of all jobs
  int64_t saved_position_ = 0;
  TimePoint saved_{};
  std::atomic<uint64_t> lines_{0}, bytes_{0}, failures_{0}, rejected_{0}, lost_logs_{0}, count_{0};
  std::atomic<bool> failing_{false};
  std::unique_ptr<controller::Store::Watcher> watcher_;
  std::thread thread_;
};

}  // namespace shoal::api
