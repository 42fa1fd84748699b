#include "learn/sparse/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <thread>

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
// Of a thread's round, with one thread and with several, which have to meet behind it.
constexpr uint64_t kRoundExamples = 32;
constexpr uint64_t kSharedRoundExamples = 1024;
// ADR 186. A worker exchanges before its unexchanged examples are this part of the exchanged ones,
constexpr uint64_t kUnexchangedPart = 2;
constexpr uint64_t kTrainingPart = 16;   // or this part of all that it trains (ADR 280),
constexpr int kTrainedTimes = 9;         // and earlier where it takes at most a tenth of its time.
constexpr uint64_t kTurnExamples = 128;  // ADR 201: of a worker, at least, in each of its turns
constexpr uint64_t kMostTimes = 4;       // ADR 430
constexpr int kTries = 64;               // to be taken whole, at the end
constexpr size_t kLine = 64;

// The first lines of what will be read soon.
void Prefetch(const Row& row) {
  const char* const at = reinterpret_cast<const char*>(row.features);
  for (size_t line = 0; line < 4; ++line) __builtin_prefetch(at + line * kLine);
}

OrderKey OrderOf(const WorkerSetup& setup, size_t threads, size_t thread, uint64_t epoch) {
  const uint64_t before = setup.meaning.base == nullptr ? 0 : setup.meaning.base->epochs;
  const uint64_t shard = static_cast<uint64_t>(setup.index) * threads + thread;
  return {static_cast<uint64_t>(setup.params.seed), shard, epoch + before};
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
      rounds_(Rounds()),
      clocks_(IsPaced() ? kClocks : rounds_),
      own_total_(ExamplesOf(train) * static_cast<uint64_t>(setup.params.epochs)),
      features_per_example_(FeaturesPerExample(train) * setup.learner->classes()),
      begun_(RealClock::Get()->Now()),
      meter_(begun_),
      barrier_(train.size()) {}

// Of an epoch; the same in every worker unless IsPaced().
uint64_t Training::Rounds() const {
  if (setup_.params.rounds > 0) return static_cast<uint64_t>(setup_.params.rounds);
  uint64_t most = 0;
  if (IsPaced()) {
    for (const LoadedShard& shard : train_) most = std::max<uint64_t>(most, shard.set.size());
    return most / (train_.size() > 1 ? kSharedRoundExamples : kRoundExamples) + 1;
  }
  if (setup_.workers > 1) return kClocks;
  for (const LoadedShard& shard : train_) most = std::max(most, shard.set.features.size());
  return most / kMostFeatures + 1;
}

void Training::ShuffleExamples(Thread& thread) {
  if (setup_.workers > 1) std::swap(thread.before, thread.order);
  if (thread.drawn_epoch == epoch_) {
    std::swap(thread.order, thread.after);
  } else {
    DrawExampleOrder(OrderOf(setup_, threads_.size(), thread.index, epoch_),
                     train_[thread.index].set.size(), &thread.order);
  }
  thread.ordered_epoch = epoch_;
}

// Marks the rows of what the thread will train until the next exchange (ADR 430). Where that goes
// farther than this epoch, the next one's order is drawn now.
void Training::NeedNextExamples(Thread& thread) {
  const LoadedShard& shard = train_[thread.index];
  const uint64_t size = shard.set.size();
  if (thread.ordered_epoch != epoch_ || size == 0) return;
  const uint64_t now = thread.at.epoch > epoch_ ? size : thread.at.example;
  const uint64_t end = now + next_round_ / threads_.size() + kTurnExamples;
  const auto need = [&](const std::vector<uint32_t>& order, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      if (i + 4 < to) Prefetch(shard.RowOf(order[i + 4]));
      table_->Need(shard.RowOf(order[i]));
    }
  };
  need(thread.order, now, std::min(end, size));
  if (end <= size || epoch_ + 1 == validation_.epochs()) return;
  if (thread.drawn_epoch != epoch_ + 1)
    DrawExampleOrder(OrderOf(setup_, threads_.size(), thread.index, epoch_ + 1), size,
                     &thread.after);
  thread.drawn_epoch = epoch_ + 1;
  need(thread.after, 0, std::min(end - size, size));
}

void Training::TrainRound(Thread& thread) {
  const LoadedShard& shard = train_[thread.index];
  const uint64_t end = shard.set.size() * (round_ + 1) / rounds_;
  if (thread.at.epoch > epoch_ || thread.at.example >= end) return;  // of an earlier life
  if (thread.ordered_epoch != epoch_) ShuffleExamples(thread);
  const Learner& learner = *setup_.learner;
  const bool plain = learner.loss().kind == LossKind::kLogistic && shard.set.weights.empty();
  const bool touches = setup_.workers > 1 && !setup_.params.deterministic;
  float* const state = table_->state();
  float* const bias = setup_.params.bias ? table_->bias() : nullptr;
  while (thread.at.example < end && !failed_.load() && !setup_.stop->load()) {
    const uint64_t begin = thread.at.example;
    const uint64_t stop = std::min(end, begin + kStopLook);
    for (uint64_t i = begin; i < stop; ++i) {
      const uint32_t example = thread.order[i];
      if (i + 2 < end) Prefetch(shard.RowOf(thread.order[i + 2]));
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
  return round_ + 1 == rounds_ && (setup_.params.validates || epoch_ + 1 == validation_.epochs());
}

// Decides what follows the round that has just been trained; runs while all threads meet.
void Training::EndRound() {
  ended_ = failed_.load() || setup_.stop->load();
  drained_ = !failed_.load() && ended_;
  last_ = ended_ || IsLastRound();
  exchange_ = false;
  if (failed_.load() || !Exchanges()) return;
  const TimePoint asked = RealClock::Get()->Now();
  exchange_ = IsExchangeDue(asked) && TryExchangeLock();
  if (!exchange_) return;
  began_ = RealClock::Get()->Now();
  waited_ = began_ - asked;
  fetched_ = TimePoint{};
  unmet_ = UnexchangedExamples();
  in_turn_ = Duration{};
  exchange_tries_ = 0;
  if (!table_->connected()) {
    if (const Status status = table_->Connect(); !status.ok()) Fail(status);
  }
  if (const Status status = RepairServers(); !status.ok()) Fail(status);
}

bool Training::IsExchangeDue(TimePoint now) {
  if (exchanged_ == TimePoint{}) exchanged_ = begun_;
  if (setup_.workers == 1) return !last_ && now - exchanged_ >= kCheckpointable;
  const uint64_t unexchanged = UnexchangedExamples();
  const uint64_t exchanged = TrainedBy(Positions()) - unexchanged;
  const auto longest_after = [this](uint64_t examples) {
    return std::max(kRoundExamples,
                    std::min(examples / kUnexchangedPart, own_total_ / kTrainingPart));
  };
  must_exchange_ = !IsPaced() || last_ || unexchanged >= longest_after(exchanged);
  next_round_ = !IsPaced() ? own_total_
                           : std::min(longest_after(exchanged + unexchanged),
                                      std::max(2 * unexchanged, kSharedRoundExamples));
  // A ticket is used, so that others do not wait for nothing.
  return must_exchange_ || exchange_lock_.has_ticket() || now - exchanged_ >= kTrainedTimes * cost_;
}

// Whether the exchange can be now; where it must not be later, it is waited for. Deterministic jobs
// have turns of their own.
bool Training::TryExchangeLock() {
  if (setup_.workers == 1 || setup_.params.deterministic) return true;
  while (!failed_.load()) {
    if (RealClock::Get()->Now() >= exchange_lock_.next_attempt()) {
      const Result<bool> mine = exchange_lock_.TryAcquire(turn_);
      if (!mine.ok()) Fail(mine.status());
      if (mine.ok() && *mine) return true;
    }
    if (!must_exchange_) return false;
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
  if (setup_.workers == 1 || thread.unexchanged == 0 || thread.ordered_epoch != epoch_) return;
  const LoadedShard& shard = train_[thread.index];
  const uint64_t now = thread.at.epoch == epoch_ ? thread.at.example : shard.set.size();
  const uint64_t least = LeastReplayed(shard.set, setup_.learner->classes()) / threads_.size() + 1;
  const auto [samples, step, weight] =
      SampleOf(thread.unexchanged, now + thread.before.size(), least, !setup_.params.deterministic);
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t back = 1 + i * step;
    const uint32_t example =
        back <= now ? thread.order[now - back] : thread.before[thread.before.size() + now - back];
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
  const TimePoint now = RealClock::Get()->Now();
  if (fetched_ == TimePoint{}) fetched_ = now;
  in_turn_ = now - fetched_;
  extend_ = IsPaced() && exchange_tries_ == 0 && !failed_.load() && !setup_.stop->load() &&
            round_ + 1 < rounds_ && UnexchangedExamples() - unmet_ < kTurnExamples;
  if (!extend_) return;
  ++round_;
  last_ = IsLastRound();
}

void Training::Exchange(Thread& thread) {
  if (setup_.params.deterministic && setup_.workers > 1 && !ended_)
    return Attempt([&] { return ExchangeInTurn(thread); });
  if (setup_.workers == 1)
    return Attempt([&] { return table_->Store(thread.index, threads_.size()); });
  const size_t part = thread.index, parts = threads_.size();
  if (exchange_tries_ > 0)
    return Attempt(
        [&] { return table_->ExchangeRest(part, parts, StateTable::RestSet::kTouched); });
  Fetch(thread);
  barrier_.ArriveAndWait([this] { Extend(); });
  while (extend_) {
    WithinMemory([&] { TrainRound(thread); });
    barrier_.ArriveAndWait([this] { Extend(); });
  }
  Attempt([&] { return table_->Push(part, parts); });
  barrier_.ArriveAndWait([this] {
    Attempt([this] { return exchange_lock_.Release(); });
    turn_ = RealClock::Get()->Now() - began_;
  });
  // A round that meets every row several times needs most of them, and marking costs more.
  const bool most = next_round_ * features_per_example_ >= kMostTimes * table_->rows();
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
  exchange_again_ = overtaken > 0 && last_ && ++exchange_tries_ < kTries;
  if (exchange_again_) return Status::Ok();
  if (overtaken > 0 && last_) {
    LogWarning(
        "the servers have taken only a part of what was learnt of {} rows of the state in "
        "{} last exchanges: other workers overtook each of them",
        overtaken, exchange_tries_);
  }
  for (Thread& thread : threads_) thread.unexchanged = 0;
  TRY(setup_.client->SetProgress(EncodePositions(Positions())));
  exchanged_ = RealClock::Get()->Now();
  const Duration cost = exchanged_ - began_ - in_turn_;
  cost_ = exchanges_++ == 0 ? cost : (cost_ + cost) / 2;
  meter_.Add(cost, waited_);
  return Status::Ok();
}

// After a round: how far it is, where the others are to hear that, and as long as they are far
// behind.
Status Training::PublishClock() {
  const uint64_t clock = epoch_ * clocks_ + (round_ + 1) * clocks_ / rounds_;
  if (setup_.workers == 1 || ended_ || exchange_lock_.has_ticket() || clock <= clock_)
    return Status::Ok();
  clock_ = clock;
  const TimePoint now = RealClock::Get()->Now();
  TRY(AwaitStragglers(clock));
  exchanged_ += RealClock::Get()->Now() - now;
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
  if (++round_ < rounds_) return;
  round_ = 0;
  EndEpoch();
  ++epoch_;
  for (Thread& thread : threads_) {
    if (thread.at.epoch < epoch_) thread.at = {epoch_, 0, thread.at.trained};
  }
  ended_ = ended_ || epoch_ == validation_.epochs();
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
  if (const Status conserved = CheckEpochs(epoch_ + 1); !conserved.ok()) Fail(conserved);
  EpochQuality quality;
  quality.epoch = epoch_ + 1;
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
  json::object event{{"epoch", quality.epoch}, {"train_loss", quality.train_loss}};
  if (!held_out_.empty()) event["held_out"] = ToJson(quality.held_out);
  if (quality.validation.examples > 0) event["validation"] = ToJson(quality.validation);
  setup_.reporter->Event(event);
  const MutexLock lock(mu_);
  reported_ = quality;
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
    for (bool exchange = exchange_; exchange; exchange = exchange_again_) {
      Exchange(thread);
      barrier_.ArriveAndWait([this] {
        exchange_again_ = false;
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
  return meter_.Read(RealClock::Get()->Now(), trained_.load(),
                     counters.bytes_pushed + counters.bytes_pulled + counters.key_bytes);
}

void Training::Report(bool last) {
  const uint64_t trained = trained_.load();
  const double seconds = std::chrono::duration<double>(RealClock::Get()->Now() - begun_).count();
  const double rate = seconds > 0 ? static_cast<double>(trained) / seconds : 0;
  json::object progress{{"step", last && !drained_ ? own_total_ : std::min(trained, own_total_)},
                        {"total", own_total_},
                        {"rate", rate},
                        {"unit", "examples"},
                        {"phase", "train"}};
  {
    const MutexLock lock(mu_);
    if (reported_.epoch > 0) {
      const bool held_out = reported_.held_out.examples > 0;
      progress["loss"] = held_out ? reported_.held_out.loss : reported_.train_loss;
      for (const Metric& metric : MetricsOf(reported_.held_out)) {
        if (metric.key == "auc" || metric.key == "r2" || metric.key == "accuracy")
          progress[metric.key] = metric.value;
      }
    }
  }
  if (setup_.workers > 1) {
    const ExchangeCost cost = MeasureExchange();
    progress["exchange"] = cost.exchange + cost.waited;
    progress["bytes_per_step"] = cost.bytes_per_example;
  }
  if (rate > 0)
    progress["eta_s"] = static_cast<double>(own_total_ - std::min(own_total_, trained)) / rate;
  setup_.reporter->Progress(progress);
}

Status Training::Monitor() {
  MutexLock lock(mu_);
  while (!done_.wait_for(lock, kReport, [this]() REQUIRES(mu_) { return running_ == 0; })) {
    lock.unlock();
    Report(false);
    lock.lock();
  }
  return status_;
}

Status Training::Run(std::vector<Position> from) {
  threads_.resize(train_.size());
  epoch_ = UINT64_MAX;
  for (size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].index = i;
    threads_[i].at = from[i];
    epoch_ = std::min(epoch_, from[i].epoch);
  }
  TRY(CheckStart());
  TRY(validation_.Recall(epoch_));
  ended_ = epoch_ >= validation_.epochs();
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
  Report(true);
  return Status::Ok();
}

}  // namespace shoal::learn::sparse
