#include "learn/sparse/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "learn/sparse/base_model.h"
#include "learn/task/memory.h"

namespace shoal::learn::sparse {
namespace {

constexpr auto kReport = std::chrono::milliseconds(200);
constexpr auto kCheckpointable = std::chrono::seconds(1);  // how old the servers' state may be
constexpr uint64_t kStopLook = 64;                         // examples
constexpr uint64_t kMostFeatures = 1u << 25;  // of a thread's round: a fifth of a second
constexpr uint64_t kClocks = 8;  // of an epoch, where rounds are as many as the examples ask for
constexpr uint64_t kTurnExamples = 128;  // ADR 201: of a worker, at least, in each of its turns
constexpr uint64_t kMostTimes = 4;       // ADR 430
constexpr int kTries = 64;               // to be taken whole, at the end
constexpr size_t kLine = 64;

// The first lines of what will be read soon.
void Prefetch(const Row& row) {
  const char* const at = reinterpret_cast<const char*>(row.features);
  for (size_t line = 0; line < 4; ++line) __builtin_prefetch(at + line * kLine);
}

uint64_t FeaturesPerExample(const std::vector<LoadedShard>& shards) {
  uint64_t features = 0, examples = 1;
  for (const LoadedShard& shard : shards) {
    features += shard.set.features.size();
    examples += shard.set.size();
  }
  return features / examples;
}

uint64_t ExamplesOf(const std::vector<LoadedShard>& shards) {
  uint64_t examples = 0;
  for (const LoadedShard& shard : shards) examples += shard.set.size();
  return examples;
}

}  // namespace

Status Diverged(std::string_view what) {
  return FailedPrecondition(
      fmt::format("the training diverged: the {} is not finite; nothing is saved. Use a smaller "
                  "alpha or a larger beta",
                  what));
}

Training::Training(const WorkerSetup& setup, const std::vector<LoadedShard>& train,
                   const std::vector<LoadedShard>& held_out,
                   const std::vector<LoadedShard>& validation, StateTable* table)
    : setup_(setup),
      train_(train),
      held_out_(held_out),
      validation_(setup, validation),
      table_(table),
      exchange_lock_(setup.client, RealClock::Get()),
      own_total_(ExamplesOf(train) * static_cast<uint64_t>(setup.params.epochs)),
      features_per_example_(FeaturesPerExample(train) * setup.learner->classes()),
      schedule_({IsPaced(), own_total_, setup.params.exchange_share}, RealClock::Get()),
      report_(setup, own_total_, RealClock::Get()),
      barrier_(train.size()) {
  at_.rounds = Rounds();
  at_.clocks = IsPaced() ? kClocks : at_.rounds;
}

// Of an epoch; the same in every worker unless IsPaced().
uint64_t Training::Rounds() const {
  if (setup_.params.rounds > 0) return static_cast<uint64_t>(setup_.params.rounds);
  uint64_t most = 0;
  if (IsPaced()) {
    for (const LoadedShard& shard : train_) most = std::max<uint64_t>(most, shard.set.size());
    return most / (train_.size() > 1 ? ExchangeSchedule::kSharedRound
                                     : ExchangeSchedule::kLeastRound) +
           1;
  }
  if (setup_.workers > 1) return kClocks;
  for (const LoadedShard& shard : train_) most = std::max(most, shard.set.features.size());
  return most / kMostFeatures + 1;
}

// Of `epoch`; a model that is continued has had some already.
OrderKey Training::KeyOf(const Thread& thread, uint64_t epoch) const {
  const uint64_t before = setup_.meaning.base == nullptr ? 0 : setup_.meaning.base->epochs;
  const uint64_t shard = static_cast<uint64_t>(setup_.index) * threads_.size() + thread.index;
  return {static_cast<uint64_t>(setup_.params.seed), shard, epoch + before};
}

// Marks the rows of what the thread will train until the next exchange (ADR 430). Where that goes
// farther than this epoch, the next one's order is drawn now.
void Training::NeedNextExamples(Thread& thread) {
  const LoadedShard& shard = train_[thread.index];
  const uint64_t size = shard.set.size();
  const OrderKey key = KeyOf(thread, at_.epoch);
  if (!thread.order.IsOf(key.epoch) || size == 0) return;
  const uint64_t now = thread.at.epoch > at_.epoch ? size : thread.at.example;
  const uint64_t end = now + schedule_.next_round() / threads_.size() + kTurnExamples;
  const auto need = [&](const std::vector<uint32_t>& order, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      if (i + 4 < to) Prefetch(shard.RowOf(order[i + 4]));
      table_->Need(shard.RowOf(order[i]));
    }
  };
  need(thread.order.present(), now, std::min(end, size));
  if (end <= size || at_.epoch + 1 == validation_.epochs()) return;
  need(thread.order.DrawNext(KeyOf(thread, at_.epoch + 1), size), 0, std::min(end - size, size));
}

void Training::TrainRound(Thread& thread) {
  const LoadedShard& shard = train_[thread.index];
  const uint64_t end = shard.set.size() * (at_.round + 1) / at_.rounds;
  if (thread.at.epoch > at_.epoch || thread.at.example >= end) return;  // of an earlier life
  const OrderKey key = KeyOf(thread, at_.epoch);
  if (!thread.order.IsOf(key.epoch)) thread.order.Enter(key, shard.set.size(), setup_.workers > 1);
  const std::vector<uint32_t>& order = thread.order.present();
  const Learner& learner = *setup_.learner;
  const bool plain = learner.loss().kind == LossKind::kLogistic && shard.set.weights.empty();
  const bool touches = setup_.workers > 1 && !setup_.params.deterministic;
  float* const state = table_->state();
  float* const bias = setup_.params.bias ? table_->bias() : nullptr;
  while (thread.at.example < end && !failed_.load() && !setup_.stop->load()) {
    const uint64_t begin = thread.at.example;
    const uint64_t stop = std::min(end, begin + kStopLook);
    for (uint64_t i = begin; i < stop; ++i) {
      const uint32_t example = order[i];
      if (i + 2 < end) Prefetch(shard.RowOf(order[i + 2]));
      const float label = shard.set.labels[example];
      const Row row = shard.RowOf(example);
      if (touches) table_->Touch(row);
      const float margin = learner.Step(state, bias, row, label, &thread.scratch);
      if (plain) {
        thread.loss += static_cast<double>(LogLoss(margin, label));
        continue;
      }
      thread.loss += static_cast<double>(LossOf(learner.loss(), margin, label) * row.weight);
      thread.losses += static_cast<double>(row.weight);
    }
    if (plain) thread.losses += static_cast<double>(stop - begin);
    thread.unexchanged += stop - begin;
    thread.at.example = stop;
    thread.at.trained += stop - begin;
    trained_.fetch_add(stop - begin, std::memory_order_relaxed);
  }
}

bool Training::IsLastRound() const {
  // Any epoch's may be the last where validation ends the training.
  return at_.round + 1 == at_.rounds &&
         (setup_.params.validates || at_.epoch + 1 == validation_.epochs());
}

// Decides what follows the round that has just been trained; runs while all threads meet.
void Training::EndRound() {
  ended_ = failed_.load() || setup_.stop->load();
  drained_ = !failed_.load() && ended_;
  last_ = ended_ || IsLastRound();
  exchange_ = UnderWay{};
  if (failed_.load() || !Exchanges()) return;
  const TimePoint asked = RealClock::Get()->Now();
  exchange_.due = IsExchangeDue() && TryExchangeLock();
  if (!exchange_.due) return;
  schedule_.Begin(asked);
  exchange_.unmet = UnexchangedExamples();
  if (!table_->connected()) {
    if (const Status status = table_->Connect(); !status.ok()) Fail(status);
  }
  if (const Status status = RepairServers(); !status.ok()) Fail(status);
}

bool Training::IsExchangeDue() {
  if (setup_.workers == 1) return !last_ && schedule_.since_last() >= kCheckpointable;
  const uint64_t unexchanged = UnexchangedExamples();
  return schedule_.IsDue(TrainedBy(Positions()) - unexchanged, unexchanged, last_,
                         exchange_lock_.has_ticket());
}

// Whether the exchange can be now; where it must not be later, it is waited for. Deterministic jobs
// have turns of their own.
bool Training::TryExchangeLock() {
  if (setup_.workers == 1 || setup_.params.deterministic) return true;
  while (!failed_.load()) {
    if (RealClock::Get()->Now() >= exchange_lock_.next_attempt()) {
      const Result<bool> mine = exchange_lock_.TryAcquire(schedule_.turn());
      if (!mine.ok()) Fail(mine.status());
      if (mine.ok() && *mine) return true;
    }
    if (!schedule_.must()) return false;
    std::this_thread::sleep_until(exchange_lock_.next_attempt());
  }
  return false;
}

// Servers that came back know no more than their last checkpoint. The first worker gives them what
// it knows of their rows: all that anybody had pushed until it last met them.
Status Training::RepairServers() {
  if (setup_.restarted_servers == nullptr || setup_.index != 0) return Status::Ok();
  const uint64_t restarted = setup_.restarted_servers->exchange(0);
  for (int server = 0; server < 64; ++server) {
    if ((restarted >> server & 1) == 0) continue;
    LogInfo("server {} came back; giving it this worker's state", server);
    setup_.reporter->Event({{"repaired_server", server}});
    TRY(table_->Rebase(server));
  }
  return Status::Ok();
}

uint64_t Training::UnexchangedExamples() const {
  uint64_t unexchanged = 0;
  for (const Thread& thread : threads_) unexchanged += thread.unexchanged;
  return unexchanged;
}

// Expects or replays a sample of what the thread has trained since the last exchange, the latest
// first.
void Training::UseSample(Thread& thread, SampleUse use) const {
  const ExampleOrder& order = thread.order;
  if (setup_.workers == 1 || thread.unexchanged == 0 || !order.IsOf(KeyOf(thread, at_.epoch).epoch))
    return;
  const LoadedShard& shard = train_[thread.index];
  const uint64_t now = thread.at.epoch == at_.epoch ? thread.at.example : shard.set.size();
  const uint64_t least = LeastReplayed(shard.set, setup_.learner->classes()) / threads_.size() + 1;
  const auto [samples, step, weight] =
      SampleOf(thread.unexchanged, order.known(now), least, !setup_.params.deterministic);
  for (uint64_t i = 0; i < samples; ++i) {
    const uint32_t example = order.Back(now, 1 + i * step);
    const Row row = shard.RowOf(example);
    const float label = shard.set.labels[example];
    if (use == SampleUse::kExpect) {
      ExpectExample(setup_, table_, row, &thread.replay);
    } else {
      ReplayExample(setup_, table_, {row, label, weight}, &thread.replay);
    }
  }
}

Status Training::ExchangeInTurn(Thread& thread) {
  const auto exchange = [&]() -> Status {
    UseSample(thread, SampleUse::kExpect);
    TRY(table_->Pull(0, 1, StateTable::RowSet::kUsed));
    UseSample(thread, SampleUse::kReplay);
    table_->Adopt(0, 1);
    return table_->Push(0, 1);
  };
  for (int turn = 0; turn < setup_.workers; ++turn) {
    if (turn == setup_.index) TRY(exchange());
    TRY(setup_.client->Barrier("turn", kNoTimeout));
  }
  // What the workers after this one have pushed; none pushes again before all have seen that.
  thread.unexchanged = 0;
  TRY(exchange());
  return setup_.client->Barrier("seen", kNoTimeout);
}

template <typename Step>
void Training::Attempt(const Step& step) {
  if (failed_.load()) return;
  if (const Status status = step(); !status.ok()) Fail(status);
}

void Training::Fetch(Thread& thread) {
  Attempt(
      [&] { return table_->Pull(thread.index, threads_.size(), StateTable::RowSet::kFrequent); });
  barrier_.ArriveAndWait([] {});
  if (!failed_.load()) WithinMemory([&] { UseSample(thread, SampleUse::kReplay); });
  barrier_.ArriveAndWait([] {});
  if (!failed_.load()) table_->Adopt(thread.index, threads_.size());
}

// Whether the next round is trained before the exchange ends; runs while all threads meet. Examples
// that are trained in a turn, on what all others have pushed, keep workers whose rounds miss each
// other from answering each other's changes ever more strongly (ADR 201).
void Training::Extend() {
  schedule_.CountTraining();
  exchange_.extend = IsPaced() && exchange_.tries == 0 && !failed_.load() && !setup_.stop->load() &&
                     at_.round + 1 < at_.rounds &&
                     UnexchangedExamples() - exchange_.unmet < kTurnExamples;
  if (!exchange_.extend) return;
  ++at_.round;
  last_ = IsLastRound();
}

void Training::Exchange(Thread& thread) {
  if (setup_.params.deterministic && setup_.workers > 1 && !ended_)
    return Attempt([&] { return ExchangeInTurn(thread); });
  if (setup_.workers == 1)
    return Attempt([&] { return table_->Store(thread.index, threads_.size()); });
  const size_t part = thread.index, parts = threads_.size();
  if (exchange_.tries > 0)
    return Attempt(
        [&] { return table_->ExchangeRest(part, parts, StateTable::RestSet::kTouched); });
  Fetch(thread);
  barrier_.ArriveAndWait([this] { Extend(); });
  while (exchange_.extend) {
    WithinMemory([&] { TrainRound(thread); });
    barrier_.ArriveAndWait([this] { Extend(); });
  }
  Attempt([&] { return table_->Push(part, parts); });
  barrier_.ArriveAndWait([this] {
    Attempt([this] { return exchange_lock_.Release(); });
    schedule_.EndTurn();
  });
  // A round that meets every row several times needs most of them, and marking costs more.
  const bool most = schedule_.next_round() * features_per_example_ >= kMostTimes * table_->rows();
  const auto which = last_  ? StateTable::RestSet::kTouched
                     : most ? StateTable::RestSet::kUsed
                            : StateTable::RestSet::kNeeded;
  if (which == StateTable::RestSet::kNeeded) WithinMemory([&] { NeedNextExamples(thread); });
  barrier_.ArriveAndWait([] {});
  Attempt([&] { return table_->ExchangeRest(part, parts, which); });
}

// After all parts were exchanged: where the threads are, and how far the epoch is. What was not
// taken of this worker's changes comes with its next exchange; if there is none, with another now.
Status Training::CheckPushed() {
  const uint64_t overtaken = table_->TakePartialPushCount();
  exchange_.again = overtaken > 0 && last_ && ++exchange_.tries < kTries;
  if (exchange_.again) return Status::Ok();
  if (overtaken > 0 && last_) {
    LogWarning(
        "the servers have taken only a part of what was learnt of {} rows of the state in "
        "{} last exchanges: other workers overtook each of them",
        overtaken, exchange_.tries);
  }
  for (Thread& thread : threads_) thread.unexchanged = 0;
  TRY(setup_.client->SetProgress(EncodePositions(Positions())));
  schedule_.End(TrainedBy(Positions()));
  return Status::Ok();
}

// After a round: how far it is, where the others are to hear that, and as long as they are far
// behind.
Status Training::PublishClock() {
  const uint64_t clock = at_.epoch * at_.clocks + (at_.round + 1) * at_.clocks / at_.rounds;
  if (setup_.workers == 1 || ended_ || exchange_lock_.has_ticket() || clock <= at_.clock)
    return Status::Ok();
  at_.clock = clock;
  const TimePoint now = RealClock::Get()->Now();
  TRY(AwaitStragglers(clock));
  schedule_.Postpone(RealClock::Get()->Now() - now);
  return Status::Ok();
}

std::vector<Position> Training::Positions() const {
  std::vector<Position> at;
  for (const Thread& thread : threads_) at.push_back(thread.at);
  return at;
}

// As long as they live, unless this worker is to stop.
Status Training::AwaitStragglers(uint64_t clock) {
  for (;;) {
    const Status met = setup_.client->Clock(clock, setup_.look);
    if (met.code() != Code::kDeadlineExceeded || setup_.stop->load())
      return met.code() == Code::kDeadlineExceeded ? Status::Ok() : met;
  }
}

// Goes on to the next round; runs while all threads meet.
void Training::PlanRound() {
  if (!failed_.load()) {
    if (const Status status = PublishClock(); !status.ok()) Fail(status);
  }
  ended_ = ended_ || failed_.load();
  if (ended_) return;
  if (++at_.round < at_.rounds) return;
  at_.round = 0;
  EndEpoch();
  ++at_.epoch;
  for (Thread& thread : threads_) {
    if (thread.at.epoch < at_.epoch) thread.at = {at_.epoch, 0, thread.at.trained};
  }
  ended_ = ended_ || at_.epoch == validation_.epochs();
}

Status Training::CheckEpochs(uint64_t epochs) const {
  return CheckTrainedCount({TrainedBy(Positions()), setup_.share.examples, epochs, "examples"},
                           fmt::format("worker {}", setup_.index));
}

Status Training::CheckStart() const {
  for (const Thread& thread : threads_) {
    const uint64_t size = train_[thread.index].set.size();
    const Position& at = thread.at;
    if (at.example <= size && at.trained == at.epoch * size + at.example) continue;
    return FailedPrecondition(fmt::format(
        "thread {} of worker {} has trained {} examples up to example {} of epoch {}, but its part "
        "of the data has {}; run the job anew",
        thread.index, setup_.index, at.trained, at.example, at.epoch + 1, size));
  }
  return Status::Ok();
}

void Training::EndEpoch() {
  if (const Status conserved = CheckEpochs(at_.epoch + 1); !conserved.ok()) Fail(conserved);
  EpochQuality quality;
  quality.epoch = at_.epoch + 1;
  double loss = 0;
  double losses = 0;
  for (Thread& thread : threads_) {
    loss += std::exchange(thread.loss, 0);
    losses += std::exchange(thread.losses, 0);
  }
  quality.train_loss = losses == 0 ? 0 : loss / losses * setup_.meaning.target.loss_unit();
  if (!std::isfinite(quality.train_loss)) Fail(Diverged("training loss"));
  if (!held_out_.empty())
    quality.held_out = MeasureModel(Model(), setup_.meaning.target, held_out_);
  if (std::isnan(quality.held_out.loss)) Fail(Diverged("held-out loss"));
  if (const Status fine = CheckDivergence(setup_, train_, quality); !fine.ok()) Fail(fine);
  if (setup_.params.validates && !failed_.load()) {
    if (setup_.workers > 1 && setup_.index == 0) {
      if (const Status taken = table_->TakeAll(); !taken.ok()) Fail(taken);
    }
    const Result<Quality> validated =
        validation_.Add(quality.epoch, Model(), [this](model::FactorModel* best) {
          if (!setup_.params.keep_optimizer) return;
          KeepOptimizerState(*setup_.learner, table_->state(), table_->bias(), best);
        });
    if (!validated.ok()) Fail(validated.status());
    if (validated.ok()) quality.validation = *validated;
  }
  curve_.push_back(quality);
  report_.AddEpoch(quality);
}

template <typename Work>
void Training::WithinMemory(const Work& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    Fail(OutOfMemory());
  }
}

void Training::RunThread(Thread& thread) {
  while (!ended_) {
    WithinMemory([&] { TrainRound(thread); });
    barrier_.ArriveAndWait([this] { WithinMemory([this] { EndRound(); }); });
    for (bool exchange = exchange_.due; exchange; exchange = exchange_.again) {
      Exchange(thread);
      barrier_.ArriveAndWait([this] {
        exchange_.again = false;
        if (failed_.load()) return;
        if (const Status status = CheckPushed(); !status.ok()) Fail(status);
      });
    }
    barrier_.ArriveAndWait([this] { WithinMemory([this] { PlanRound(); }); });
  }
  const MutexLock lock(mu_);
  if (--running_ == 0) done_.notify_all();
}

void Training::Fail(const Status& status) {
  const MutexLock lock(mu_);
  if (status_.ok()) status_ = status;
  failed_.store(true);
}

model::FactorModel Training::Model(bool with_optimizer) const {
  const Learner& learner = *setup_.learner;
  const uint64_t features = table_->features();
  model::FactorModel model = learner.EmptyModel(features);
  model.linear.hash_bits = static_cast<uint32_t>(setup_.params.hash_bits);
  model.linear.normalize = setup_.normalization == Normalization::kRows;
  if (setup_.params.bias) model.linear.bias = learner.BiasOf(table_->bias());
  InParallel(train_.size(), [&](size_t part) {
    const uint64_t begin = features * part / train_.size();
    const uint64_t end = features * (part + 1) / train_.size();
    learner.FillModel(table_->state(), begin, end - begin, &model);
  });
  if (with_optimizer) KeepOptimizerState(learner, table_->state(), table_->bias(), &model);
  return model;
}

ExchangeCost Training::MeasureExchange() const {
  const ps::Counters counters = setup_.client->counters();
  return schedule_.MeasureCost(trained_.load(),
                               counters.bytes_pushed + counters.bytes_pulled + counters.key_bytes);
}

Status Training::Monitor() {
  MutexLock lock(mu_);
  while (!done_.wait_for(lock, kReport, [this]() REQUIRES(mu_) { return running_ == 0; })) {
    lock.unlock();
    report_.SendProgress(trained_.load(), false, MeasureExchange());
    lock.lock();
  }
  return status_;
}

Status Training::Run(std::vector<Position> from) {
  threads_.resize(train_.size());
  at_.epoch = UINT64_MAX;
  for (size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].index = i;
    threads_[i].at = from[i];
    at_.epoch = std::min(at_.epoch, from[i].epoch);
  }
  TRY(CheckStart());
  TRY(validation_.Recall(at_.epoch));
  ended_ = at_.epoch >= validation_.epochs();
  if (setup_.workers > 1 && !table_->connected()) TRY(table_->Connect());
  if (setup_.workers > 1) TRY(exchange_lock_.Connect());
  // No worker pushes before all have begun from the same state.
  if (setup_.workers > 1 && setup_.params.deterministic)
    TRY(setup_.client->Barrier("begin", kNoTimeout));
  {
    const MutexLock lock(mu_);
    running_ = threads_.size();
  }
  std::vector<std::thread> threads;
  for (Thread& thread : threads_) threads.emplace_back([this, &thread] { RunThread(thread); });
  const Status trained = Monitor();
  for (std::thread& thread : threads) thread.join();
  TRY(trained);
  report_.SendProgress(trained_.load(), !drained_, MeasureExchange());
  return Status::Ok();
}

}  // namespace shoal::learn::sparse
