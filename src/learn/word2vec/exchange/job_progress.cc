#include "learn/word2vec/exchange/job_progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/mutex.h"
#include "learn/word2vec/exchange/row_cache.h"

namespace shoal::learn::word2vec {
namespace {

// Columns. Counts are whole numbers, which f32 holds exactly up to 2²⁴; words are split into two
// columns.
enum Column : uint8_t {
  kWordsLow,
  kWordsHigh,
  kLoss,
  kPairs,
  kState,
  kRounds,
  kRoundsHigh,
  kBytes,
  kColumns
};
static_assert(kColumns == JobProgress::kWidth && kState == JobProgress::kStateColumn);
constexpr uint64_t kPart = 1u << 22;
constexpr int kPushes = 3;  // one, and two more in case a server restarts twice

std::vector<float> RowOf(const JobProgress::WorkerTotals& mine) {
  std::vector<float> row(kColumns);
  row[kWordsLow] = static_cast<float>(mine.words % kPart);
  row[kWordsHigh] = static_cast<float>(mine.words / kPart);
  row[kLoss] = static_cast<float>(mine.loss);
  row[kPairs] = static_cast<float>(mine.pairs);
  row[kState] = static_cast<float>(mine.state);
  row[kRounds] = static_cast<float>(mine.rounds % kPart);
  row[kRoundsHigh] = static_cast<float>(mine.rounds / kPart);
  row[kBytes] = static_cast<float>(mine.bytes);
  return row;
}

uint64_t Whole(float low, float high) {
  return static_cast<uint64_t>(std::llround(std::max(0.0f, high))) * kPart +
         static_cast<uint64_t>(std::llround(std::max(0.0f, low)));
}

}  // namespace

Result<std::unique_ptr<JobProgress>> JobProgress::Make(ps::Client* client, int worker, int workers,
                                                       Ended ended) {
  std::unique_ptr<JobProgress> progress(new JobProgress(client, worker, workers, std::move(ended)));
  ps::TableSpec spec;
  spec.name = "progress";
  spec.rows = static_cast<uint64_t>(workers);
  spec.dim = kColumns;
  TRY_ASSIGN(progress->table_, client->CreateTable(spec, kServerRestartTimeout));
  // An earlier incarnation of this worker may have written the row.
  const MutexLock lock(progress->mu_);
  progress->seen_.resize(kColumns);
  TRY(client->PullRange(progress->table_, static_cast<uint64_t>(worker), 1,
                        ps::Rows(progress->seen_.data(), kColumns), kServerRestartTimeout));
  return progress;
}

Result<JobProgress::Totals> JobProgress::Exchange(const WorkerTotals& mine) {
  const MutexLock lock(mu_);
  const std::vector<float> row = RowOf(mine);
  TRY(Push(row));
  std::vector<float> rows(static_cast<size_t>(workers_) * kColumns);
  if (workers_ == 1) {
    rows = seen_;
  } else {
    TRY(client_->PullRange(table_, 0, static_cast<uint64_t>(workers_),
                           ps::Rows(rows.data(), kColumns), kServerRestartTimeout));
  }

  RaiseToLatest(rows.data());
  const std::vector<int> ended = ended_ ? ended_() : std::vector<int>{};
  RestoreEnded(ended, rows.data());
  Totals all;
  uint64_t others = 0;
  uint64_t others_running = 0;
  for (int worker = 0; worker < workers_; ++worker) {
    const float* const of = rows.data() + static_cast<size_t>(worker) * kColumns;
    const uint64_t words = worker == worker_ ? mine.words : Whole(of[kWordsLow], of[kWordsHigh]);
    const auto state = static_cast<WorkerState>(std::lround(of[kState]));
    all.words += words;
    all.loss += of[kLoss];
    all.pairs += of[kPairs];
    all.bytes += of[kBytes];
    all.rounds = std::max(all.rounds, Whole(of[kRounds], of[kRoundsHigh]));
    all.running += state == WorkerState::kRunning;
    all.saving = all.saving || state == WorkerState::kSaving;
    all.drained += state == WorkerState::kDrained;
    all.to_come += state == WorkerState::kDrained && worker != worker_ &&
                   std::find(ended.begin(), ended.end(), worker) == ended.end();
    if (worker == worker_) continue;
    others += words;
    others_running += state == WorkerState::kRunning;
  }
  const uint64_t others_before = others_words_.load(std::memory_order_relaxed);
  const uint64_t mine_before = mine_then_.load(std::memory_order_relaxed);
  if (mine.words > mine_before && others >= others_before) {
    const double pace =
        static_cast<double>(others - others_before) / static_cast<double>(mine.words - mine_before);
    others_pace_.store(std::min(pace, 2.0 * static_cast<double>(others_running)),
                       std::memory_order_relaxed);
  }
  all.saving = all.saving || std::find(ended.begin(), ended.end(), 0) != ended.end();
  others_words_.store(others, std::memory_order_relaxed);
  mine_then_.store(mine.words, std::memory_order_relaxed);
  return all;
}

Status JobProgress::Push(const std::vector<float>& row) {
  const ps::Key key = static_cast<ps::Key>(worker_);
  const auto told = [&]() REQUIRES(mu_) {
    constexpr std::array kExact = {kWordsLow, kWordsHigh, kState};
    return std::all_of(kExact.begin(), kExact.end(),
                       [&](Column i) REQUIRES(mu_) { return seen_[i] == row[i]; });
  };
  for (int push = 0; push == 0 || (push < kPushes && !told()); ++push) {
    std::vector<float> delta(kColumns);
    for (size_t i = 0; i < kColumns; ++i) delta[i] = row[i] - seen_[i];
    TRY_ASSIGN(const ps::Ticket ticket,
               client_->PushPull(table_, {&key, 1}, ps::ConstRows(delta.data(), kColumns),
                                 ps::Rows(seen_.data(), kColumns)));
    TRY(client_->Wait(ticket, kServerRestartTimeout));
  }
  return Status::Ok();
}

// A server restored from a checkpoint may have older numbers of the others, and workers that have
// ended do not publish again.
void JobProgress::RaiseToLatest(float* rows) {
  latest_.resize(static_cast<size_t>(workers_) * kColumns);
  for (int worker = 0; worker < workers_; ++worker) {
    float* const now = rows + static_cast<size_t>(worker) * kColumns;
    float* const then = latest_.data() + static_cast<size_t>(worker) * kColumns;
    const uint64_t words_now = Whole(now[kWordsLow], now[kWordsHigh]);
    const uint64_t words_then = Whole(then[kWordsLow], then[kWordsHigh]);
    const bool forgotten =
        words_now < words_then || (words_now == words_then && now[kState] < then[kState]);
    if (worker == worker_ || !forgotten) {
      std::copy_n(now, kColumns, then);
    } else {
      std::copy_n(then, kColumns, now);
    }
  }
}

void JobProgress::RestoreEnded(const std::vector<int>& ended, float* rows) const {
  for (const int worker : ended) {
    if (worker < 0 || worker >= workers_ || worker == worker_) continue;
    float& state = rows[static_cast<size_t>(worker) * kColumns + kState];
    if (std::lround(state) == static_cast<long>(WorkerState::kRunning))
      state = static_cast<float>(WorkerState::kFinished);
  }
}

}  // namespace shoal::learn::word2vec
