#include "learn/word2vec/training.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"

namespace shoal::learn::word2vec {
namespace {

constexpr size_t kCopyBytes = 24 << 20;  // of a worker's copies of frequent rows
// Words of all threads within which every copy of a row meets the others.
constexpr double kCopyWords = 100e3;
constexpr size_t kReadItems = 16 * 1024;
constexpr auto kMonitor = std::chrono::milliseconds(10);
constexpr auto kReport = std::chrono::milliseconds(200);
constexpr size_t kCurvePoints = 100;

std::vector<uint64_t> CountsOf(const data::Vocabulary& vocabulary) {
  std::vector<uint64_t> counts(vocabulary.size());
  for (uint32_t i = 0; i < vocabulary.size(); ++i) counts[i] = vocabulary.count(i);
  return counts;
}

uint64_t WordsOf(const std::vector<data::EncodedShard>& shards) {
  uint64_t words = 0;
  for (const data::EncodedShard& shard : shards) words += shard.words();
  return words;
}

// A window for each word that is kept.
uint32_t WindowsOf(uint64_t words, const Sampler& sampler, const data::Vocabulary& vocabulary) {
  const double kept = sampler.kept_words() / static_cast<double>(vocabulary.words());
  return static_cast<uint32_t>(std::clamp(static_cast<double>(words) * kept, 1.0, 1e9));
}

}  // namespace

Status Diverged(std::string_view what) {
  return FailedPrecondition(
      fmt::format("the training diverged: {} is not finite; nothing is saved. Use fewer workers, a "
                  "smaller alpha, or exchange more often (exchange_words)",
                  what));
}

Training::Training(const WorkerSetup& setup, const data::Vocabulary& vocabulary,
                   const std::vector<data::EncodedShard>& shards, RowCache* cache,
                   JobProgress* progress)
    : setup_(setup),
      vocabulary_(vocabulary),
      shards_(shards),
      cache_(cache),
      progress_(progress),
      between_workers_(setup.params, setup.workers, static_cast<int>(shards.size())),
      sampler_(CountsOf(vocabulary), setup.params.sample),
      round_windows_(WindowsOf(between_workers_.round_words(), sampler_, vocabulary)),
      own_total_(WordsOf(shards) * static_cast<uint64_t>(setup.params.epochs)),
      job_total_(vocabulary.words() * static_cast<uint64_t>(setup.params.epochs)) {}

// Rows that one thread uses kUsesOfCopy times or more, as centre or as noise, before they are
// swept. The copy of a rarer row would be merged as often as it is used.
uint64_t Training::RowsWorthCopying() const {
  const auto words = static_cast<double>(vocabulary_.words());
  double noise = 0;  // the sum that noise words are drawn by
  for (uint32_t row = 0; row < vocabulary_.size(); ++row)
    noise += std::pow(static_cast<double>(vocabulary_.count(row)), 0.75);
  const double drawn =
      static_cast<double>(setup_.params.negative) * sampler_.kept_words() / words / noise;
  const double own_words = kCopyWords / static_cast<double>(shards_.size());
  uint32_t row = 0;
  for (; row < vocabulary_.size(); ++row) {
    const auto count = static_cast<double>(vocabulary_.count(row));
    const double uses =
        count / words * sampler_.KeepProbability(row) + drawn * std::pow(count, 0.75);
    if (uses * own_words < Trainer::kUsesOfCopy) break;
  }
  return row;
}

Status Training::MakeCopies() {
  if (shards_.size() == 1) return Status::Ok();
  // A copy and what it was when last merged, of both matrices.
  const size_t bytes = 2 * kTables * cache_->local(kInput).stride() * sizeof(float);
  const uint64_t rows = std::min({static_cast<uint64_t>(setup_.params.hot_rows), RowsWorthCopying(),
                                  kCopyBytes / (bytes * shards_.size())});
  if (rows == 0) return Status::Ok();
  Matrix* const shared[kTables] = {&cache_->local(kInput), &cache_->local(kOutput)};
  for (size_t thread = 0; thread < shards_.size(); ++thread) {
    TRY_ASSIGN(
        std::unique_ptr<RowCopies> copies,
        RowCopies::Make(static_cast<uint32_t>(rows), shared, &cache_->locks(), &cache_->kernels()));
    copies_.push_back(std::move(copies));
  }
  return Status::Ok();
}

// A thread merges each of its copies within kCopyWords words of all threads, so that rows which are
// too rare to be merged for their use are no older either.
void Training::SweepCopies(Thread& thread, uint64_t words) {
  if (copies_.empty()) return;
  RowCopies& copies = *copies_[thread.index];
  const double of_all = static_cast<double>(words) * static_cast<double>(threads_.size());
  thread.copies_owed += of_all * copies.rows() / kCopyWords;
  for (; thread.copies_owed >= 1; thread.copies_owed -= 1) {
    for (const TableKind table : {kInput, kOutput}) copies.Merge(table, thread.copy_row);
    if (++thread.copy_row == copies.rows()) thread.copy_row = 0;
  }
}

// The thread's copies of the rows that it is about to exchange; in a complete sweep those of all
// threads, so that every change before it is exchanged.
void Training::MergeDueCopies(Thread& thread) {
  if (copies_.empty()) return;
  const bool all = Completing(thread);
  for (const std::unique_ptr<RowCopies>& copies : copies_) {
    if (!all && copies != copies_[thread.index]) continue;
    for (const TableKind table : {kInput, kOutput}) {
      for (const uint32_t row : thread.trainer->due(table)) copies->Merge(table, row);
    }
  }
}

// A complete sweep does not see rows that wait in another thread's list: from its begin until the
// first round after it, all threads exchange due rows however little they have moved.
bool Training::Completing(const Thread& thread) const {
  return completing_.load() > 0 || completed_.load() != thread.completed;
}

Status Training::Prepare(std::vector<Position> from) {
  TrainingSet set;
  set.params = setup_.params;
  set.sampler = &sampler_;
  if (setup_.params.hs) tree_ = std::make_unique<const HuffmanTree>(CountsOf(vocabulary_));
  set.tree = tree_.get();
  set.kernels = &cache_->kernels();
  set.input = &cache_->local(kInput);
  set.output = &cache_->local(kOutput);
  set.locks = &cache_->locks();
  set.counts_uses = setup_.workers > 1;
  TRY(MakeCopies());
  threads_.resize(shards_.size());
  for (size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.index = i;
    thread.at = from[i];
    words_ += from[i].words;
    TRY_ASSIGN(thread.trainer, Trainer::Make(set, Random(from[i].random), between_workers_));
    thread.trainer->UseCopies(copies_.empty() ? nullptr : copies_[i].get());
    thread.exchange = std::make_unique<RowExchange>(cache_, between_workers_);
    TRY_ASSIGN(thread.cursor, shards_[i].Open());
    TRY(thread.cursor->Seek(std::min(from[i].item, shards_[i].items())));
  }
  positions_ = std::make_unique<Positions>(std::move(from));
  return Status::Ok();
}

float Training::Alpha(uint64_t own) const {
  // Deterministic: as if the others were as far as this worker.
  const double done =
      setup_.params.deterministic
          ? static_cast<double>(own) / static_cast<double>(std::max<uint64_t>(1, own_total_))
          : static_cast<double>(progress_->EstimateWords(own)) /
                static_cast<double>(std::max<uint64_t>(1, job_total_));
  const double alpha =
      setup_.params.alpha - (setup_.params.alpha - setup_.params.min_alpha) * std::min(1.0, done);
  return static_cast<float>(alpha);
}

void Training::Sweep(Thread& thread) {
  const auto threads = static_cast<uint32_t>(threads_.size());
  const uint32_t rows = vocabulary_.size();
  const double share = static_cast<double>(between_workers_.round_words()) * threads /
                       static_cast<double>(between_workers_.sweep_words());
  auto left = static_cast<uint32_t>(std::ceil(share * rows / threads));
  const uint64_t until_complete = between_workers_.SweepsUntilComplete(rows);
  const bool complete = thread.partial + 1 >= until_complete;
  if (thread.sweep_row == 0) {
    thread.sweep_row = static_cast<uint32_t>(thread.index);
    if (complete) completing_.fetch_add(1);
  }
  for (; left > 0 && thread.sweep_row < rows; --left, thread.sweep_row += threads) {
    for (const TableKind table : {kInput, kOutput}) {
      // A lone worker does not count uses; it exchanges rarely enough for all rows.
      bool used = setup_.workers == 1;
      for (Thread& other : threads_) used |= other.trainer->uses(table).TakeUsed(thread.sweep_row);
      if (used) thread.trainer->due(table).push_back(thread.sweep_row);
    }
  }
  if (thread.sweep_row < rows) return;
  thread.sweep_row = 0;
  thread.partial = complete ? 0 : thread.partial + 1;
  if (!complete) return;
  ++thread.sweeps;
  completed_.fetch_add(1);
  completing_.fetch_sub(1);
}

Status Training::Issue(Thread& thread) {
  const uint64_t completed = completed_.load();
  const bool all = Completing(thread);
  Trainer& trainer = *thread.trainer;
  TRY(thread.exchange->Issue(trainer.due(kInput), trainer.due(kOutput),
                             all ? nullptr : &thread.small));
  for (const TableKind table : {kInput, kOutput}) {
    for (const uint32_t row : thread.small[table]) trainer.uses(table).MarkUsed(row);
    thread.small[table].clear();
  }
  // What is under way in another thread's request stays in the list, and goes with the next one.
  if (trainer.due(kInput).empty() && trainer.due(kOutput).empty()) thread.completed = completed;
  return Status::Ok();
}

Status Training::Round(Thread& thread) {
  thread.windows = 0;
  Sweep(thread);
  MergeDueCopies(thread);
  if (setup_.params.deterministic && setup_.workers > 1) {
    // The plan is an estimate; what exceeds it goes with the last flush.
    return thread.rounds < rounds_ ? RoundInTurn(thread) : Status::Ok();
  }
  // The answers of the round before are waited for: a thread that is ahead of them would make the
  // bound on staleness a fiction (ADR 10).
  TRY(thread.exchange->Collect(0));
  return Issue(thread);
}

Status Training::TimedRound(Thread& thread) {
  const TimePoint begin = RealClock::Get()->Now();
  const Status status = Round(thread);
  exchange_ns_.fetch_add((RealClock::Get()->Now() - begin).count(), std::memory_order_relaxed);
  return status;
}

Status Training::RoundInTurn(Thread& thread) {
  ++thread.rounds;
  for (int turn = 0; turn < setup_.workers; ++turn) {
    if (turn == setup_.index) {
      while (!thread.trainer->due(kInput).empty() || !thread.trainer->due(kOutput).empty()) {
        TRY(Issue(thread));
        TRY(thread.exchange->Collect(0));
      }
    }
    TRY(setup_.client->Barrier("round"));
  }
  return Status::Ok();
}

Status Training::Publish(Thread& thread) {
  const Trainer::Loss loss = thread.trainer->TakeLoss();
  if (!std::isfinite(loss.sum)) return Diverged("the loss");
  {
    const MutexLock lock(mu_);
    loss_ += loss.sum;
    pairs_ += static_cast<double>(loss.pairs);
  }
  const auto safe = positions_->Update(thread.index, thread.at, thread.sweeps);
  if (!safe || !Exchanges()) return Status::Ok();
  return setup_.client->SetProgress(EncodePositions(*safe));
}

Status Training::TrainBlocks(Thread& thread, std::span<const uint32_t> items) {
  while (!items.empty() && !Stopping()) {
    const size_t size = std::min(items.size(), Trainer::kBlockItems);
    const uint64_t before = thread.trainer->words();
    thread.trainer->Load(items.first(size));
    const float alpha = Alpha(words_.load(std::memory_order_relaxed));
    while (const uint32_t done = thread.trainer->Train(
               round_windows_ - std::min(thread.windows, round_windows_ - 1), alpha)) {
      thread.windows += done;
      if (Exchanges() && thread.windows >= round_windows_) TRY(TimedRound(thread));
    }
    items = items.subspan(size);
    const uint64_t words = thread.trainer->words() - before;
    SweepCopies(thread, words);
    words_.fetch_add(words, std::memory_order_relaxed);
    thread.at.words += words;
    thread.at.item += size;
    thread.at.random = thread.trainer->random().state();
  }
  return Publish(thread);
}

Status Training::TrainThread(Thread& thread) {
  std::vector<uint32_t> items(kReadItems);
  const auto epochs = static_cast<uint64_t>(setup_.params.epochs);
  while (thread.at.epoch < epochs && shards_[thread.index].words() > 0 && !Stopping()) {
    TRY_ASSIGN(const size_t read, thread.cursor->Read(items));
    if (read == 0) {
      ++thread.at.epoch;
      thread.at.item = 0;
      TRY(thread.cursor->Seek(0));
      continue;
    }
    TRY(TrainBlocks(thread, {items.data(), read}));
  }
  if (shards_[thread.index].words() == 0) thread.at.epoch = epochs;
  while (thread.rounds < rounds_ && !Stopping()) TRY(Round(thread));
  TRY(thread.exchange->Collect(0));
  return Publish(thread);
}

void Training::RunThread(Thread& thread) {
  const Status status = TrainThread(thread);
  if (!status.ok()) Fail(status);
  const MutexLock lock(mu_);
  --running_;
  ended_.notify_all();
}

void Training::Fail(const Status& status) {
  const MutexLock lock(mu_);
  if (status_.ok()) status_ = status;
  failed_.store(true);
}

Status Training::PublishProgress(WorkerState state) {
  TRY(RepairServers());
  JobProgress::WorkerTotals mine;
  mine.words = words_.load();
  mine.state = state;
  mine.rounds = own_total_ / between_workers_.round_words() + 1;
  mine.bytes = static_cast<double>(WireBytes() - bytes_before_);
  {
    const MutexLock lock(mu_);
    mine.loss = loss_;
    mine.pairs = pairs_;
  }
  TRY_ASSIGN(all_, progress_->Exchange(mine));
  const uint64_t last = curve_.empty() ? 0 : curve_.back().first;
  const bool worth = all_.words - std::min(all_.words, last) >= job_total_ / kCurvePoints ||
                     state != WorkerState::kRunning;
  if (all_.pairs > curve_pairs_ && worth) {
    curve_.emplace_back(all_.words, (all_.loss - curve_loss_) / (all_.pairs - curve_pairs_));
    curve_loss_ = all_.loss;
    curve_pairs_ = all_.pairs;
  }
  return Status::Ok();
}

uint64_t Training::WireBytes() const {
  const ps::Counters counters = setup_.client->counters();
  return counters.bytes_pushed + counters.bytes_pulled + counters.key_bytes;
}

void Training::MeasureExchange(uint64_t words, double seconds) {
  const int64_t spent = exchange_ns_.load(std::memory_order_relaxed);
  const uint64_t bytes = WireBytes();
  const double share = static_cast<double>(spent - reported_exchange_ns_) / 1e9 / seconds /
                       static_cast<double>(threads_.size());
  const double per_word = static_cast<double>(bytes - reported_bytes_) / static_cast<double>(words);
  const double old = rate_ == 0 ? 0 : 0.7;
  exchange_ = old * exchange_ + (1 - old) * std::min(1.0, share);
  bytes_per_word_ = old * bytes_per_word_ + (1 - old) * per_word;
  reported_exchange_ns_ = spent;
  reported_bytes_ = bytes;
}

void Training::ReportProgress(bool last) {
  const TimePoint now = RealClock::Get()->Now();
  if (!last && now - reported_ < kReport) return;
  const uint64_t words = words_.load();
  const double seconds = std::chrono::duration<double>(now - reported_).count();
  if (reported_ != TimePoint{} && words > reported_words_ && seconds > 0.02) {
    MeasureExchange(words - reported_words_, seconds);
    const double rate = static_cast<double>(words - reported_words_) / seconds;
    rate_ = rate_ == 0 ? rate : 0.7 * rate_ + 0.3 * rate;
  }
  reported_ = now;
  reported_words_ = words;
  json::object progress{{"step", words},          {"total", own_total_},    {"rate", rate_},
                        {"unit", "words"},        {"phase", "train"},       {"lr", Alpha(words)},
                        {"job_step", all_.words}, {"job_total", job_total_}};
  if (!curve_.empty()) progress["loss"] = curve_.back().second;
  if (setup_.workers > 1 && rate_ > 0) {
    progress["exchange"] = exchange_;
    progress["bytes_per_step"] = bytes_per_word_;
  }
  if (rate_ > 0)
    progress["eta_s"] = static_cast<double>(own_total_ - std::min(own_total_, words)) / rate_;
  setup_.reporter->Progress(progress);
}

Status Training::RepairServers() {
  if (setup_.restarted_servers == nullptr || setup_.index != 0) return Status::Ok();
  const uint64_t restarted = setup_.restarted_servers->load();
  for (int server = 0; server < 64; ++server) {
    if ((restarted >> server & 1) == 0) continue;
    LogInfo("server {} came back; giving it this worker's rows", server);
    setup_.reporter->Event({{"repaired_server", server}});
    TRY(cache_->Restore(server));
  }
  setup_.restarted_servers->fetch_and(~restarted);
  return Status::Ok();
}

Status Training::Monitor() {
  MutexLock lock(mu_);
  while (!ended_.wait_for(lock, kMonitor, [this]() REQUIRES(mu_) { return running_ == 0; })) {
    lock.unlock();
    Status status = RepairServers();
    if (status.ok() && !setup_.params.deterministic)
      status = PublishProgress(WorkerState::kRunning);
    if (!status.ok()) Fail(status);
    ReportProgress(false);
    lock.lock();
  }
  return status_;
}

Status Training::FlushInTurn() {
  if (!setup_.params.deterministic || setup_.workers == 1 || setup_.stop->load())
    return cache_->FlushAll();
  for (int turn = 0; turn < setup_.workers; ++turn) {
    if (turn == setup_.index) TRY(cache_->FlushAll());
    TRY(setup_.client->Barrier("flush"));
  }
  return Status::Ok();
}

Status Training::Run(std::vector<Position> from) {
  TRY(Prepare(std::move(from)));
  bytes_before_ = reported_bytes_ = WireBytes();
  TRY(PublishProgress(WorkerState::kRunning));
  words_before_ = all_.words;
  if (setup_.params.deterministic && setup_.workers > 1) {
    TRY(setup_.client->Barrier("planned"));
    TRY(PublishProgress(WorkerState::kRunning));
    rounds_ = all_.rounds;
  }
  {
    const MutexLock lock(mu_);
    running_ = threads_.size();
  }
  std::vector<std::thread> threads;
  for (Thread& thread : threads_) threads.emplace_back([this, &thread] { RunThread(thread); });
  const Status trained = Monitor();
  for (std::thread& thread : threads) thread.join();
  TRY(trained);
  for (const std::unique_ptr<RowCopies>& copies : copies_) copies->MergeAll();

  drained_ = setup_.stop->load() && words_.load() < own_total_;
  if (!drained_ && words_.load() != own_total_) {
    const auto epochs = static_cast<uint64_t>(setup_.params.epochs);
    return CheckTrainedCount({words_.load(), own_total_ / epochs, epochs, "words"},
                             fmt::format("worker {}", setup_.index));
  }
  TRY(RepairServers());
  TRY(FlushInTurn());
  std::vector<Position> at = positions_->current();
  if (Exchanges()) TRY(setup_.client->SetProgress(EncodePositions(at)));
  TRY(PublishProgress(drained_ ? WorkerState::kDrained : WorkerState::kFinished));
  ReportProgress(true);
  return Status::Ok();
}

}  // namespace shoal::learn::word2vec
