#include "learn/sparse/exchange/job_completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "learn/coordination/trained_count.h"
#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(1);
constexpr auto kSlowPoll = std::chrono::milliseconds(20);
// How long the first worker of a drained job waits for the others; SIGKILL comes after 10 s.
constexpr auto kDrainTimeout = std::chrono::seconds(4);
constexpr auto kPollInterval = std::chrono::milliseconds(50);  // whether a server came back
constexpr int kPollsBetweenPublishes = 20;

// Tells the servers where a worker that waits has come to, again whenever one came back, which may
// have forgotten it, and every second: it is a notice, which is lost with a connection. Until
// destroyed, in a thread of its own.
class ProgressPublisher {
 public:
  ProgressPublisher(ps::Client* client, std::string progress)
      : thread_([client, progress = std::move(progress)](const std::stop_token& stop) {
          std::mutex mu;  // not checked: only the thread's own
          std::condition_variable_any stopped;
          std::unique_lock lock(mu);
          int64_t told = -1;  // at how many restarts
          for (int look = 0; !stop.stop_requested(); ++look) {
            const int64_t now = client->server_restarts();
            const bool due = told != now || look % kPollsBetweenPublishes == 0;
            if (due && client->SetProgress(progress).ok()) told = now;
            stopped.wait_for(lock, stop, kPollInterval, [] { return false; });
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace

JobProgress::JobProgress(const WorkerSetup& setup, const DatasetSummary& all)
    : setup_(setup),
      epochs_(static_cast<uint64_t>(setup.params.epochs)),
      examples_(all.examples),
      trained_(all.examples.size()) {}

Result<bool> JobProgress::Complete() {
  const std::vector<int> ended = setup_.ended ? setup_.ended() : std::vector<int>{};
  TRY(ReadProgress());
  bool complete = true;
  for (size_t worker = 0; worker < trained_.size(); ++worker) {
    const TrainedCount numbers{trained_[worker], examples_[worker], epochs_, "examples"};
    if (numbers.trained >= numbers.expected()) continue;
    complete = false;
    if (std::find(ended.begin(), ended.end(), static_cast<int>(worker)) != ended.end())
      return CheckTrainedCount(numbers, fmt::format("worker {} has ended and", worker));
  }
  return complete;
}

Status JobProgress::ReadProgress() {
  for (size_t worker = 0; worker < trained_.size(); ++worker) {
    if (trained_[worker] >= examples_[worker] * epochs_) continue;
    TRY_ASSIGN(trained_[worker], ReadWorkerProgress(static_cast<int>(worker), trained_[worker]));
  }
  return Status::Ok();
}

Result<uint64_t> JobProgress::ReadWorkerProgress(int worker, uint64_t before) const {
  const Result<std::string> bytes = setup_.client->GetProgress(worker);
  if (bytes.status().code() == Code::kNotFound || (bytes.ok() && bytes->empty())) return before;
  TRY(bytes.status());
  TRY_ASSIGN(const std::vector<Position> at, DecodePositions(*bytes));
  return std::max(before, TrainedBy(at));
}

Status AwaitOthers(const WorkerSetup& setup, bool drained, const std::vector<Position>& at,
                   JobProgress* all) {
  if (setup.workers == 1 || (drained && setup.index != 0)) return Status::Ok();
  const ProgressPublisher teller(setup.client, EncodePositions(at));
  bool complete = drained || setup.index != 0;
  for (auto pause = kPoll; !complete && !setup.stop->load();
       pause = std::min(pause * 2, kSlowPoll)) {
    TRY_ASSIGN(complete, all->Complete());
    if (!complete) std::this_thread::sleep_for(pause);
  }
  const bool stops = drained || !complete;
  const Status met =
      setup.client->Barrier("trained", stops ? Duration(kDrainTimeout) : Duration(kNoTimeout));
  if (!stops) return met;
  if (met.code() != Code::kDeadlineExceeded) TRY(met);
  if (!met.ok()) {
    LogWarning("other workers have not drained within {}; saving without their last examples",
               FormatDuration(kDrainTimeout));
  }
  return all->ReadProgress();
}

}  // namespace shoal::learn::sparse
