#include "learn/sparse/exchange/exchange_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shoal::learn::sparse {
namespace {

// ADR 186. A worker exchanges before its unexchanged examples are this part of the exchanged ones,
constexpr double kUnexchangedPart = 1.0 / 2;
constexpr double kTrainingPart = 1.0 / 16;  // or this part of all that it trains (ADR 280),
constexpr double kWorthShare = 1.0 / 10;  // and earlier as long as that takes so much of its time.
constexpr double kMostStretch = 1024;
constexpr int kBisections = 24;

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

ExchangeSchedule::ExchangeSchedule(const ExchangePlan& plan, const Clock* clock)
    : plan_(plan), clock_(clock), begun_(clock->Now()), meter_(begun_), ended_(begun_) {}

double ExchangeSchedule::LongestRound(uint64_t exchanged) const {
  const double quality = std::min(kUnexchangedPart * static_cast<double>(exchanged),
                                  kTrainingPart * static_cast<double>(plan_.examples));
  return std::max<double>(kLeastRound, stretch_ * quality);
}

bool ExchangeSchedule::IsDue(uint64_t exchanged, uint64_t unexchanged, bool last, bool queued) {
  const double trained = static_cast<double>(unexchanged);
  must_ = !plan_.paced || last || trained >= LongestRound(exchanged);
  next_round_ = plan_.examples;
  if (plan_.paced) {
    next_round_ = std::min(static_cast<uint64_t>(LongestRound(exchanged + unexchanged)),
                           std::max(2 * unexchanged, kSharedRound));
  }
  // A ticket is used, so that others do not wait for nothing.
  if (must_ || queued) return true;
  const bool worth = Seconds(since_last()) >= (1 - kWorthShare) / kWorthShare * Seconds(cost_);
  return worth && (plan_.share <= 0 || spare_ >= 1);
}

void ExchangeSchedule::Begin(TimePoint asked) {
  began_ = clock_->Now();
  waited_ = began_ - asked;
  fetched_ = TimePoint{};
  in_turn_ = Duration{};
}

void ExchangeSchedule::CountTraining() {
  const TimePoint now = clock_->Now();
  if (fetched_ == TimePoint{}) fetched_ = now;
  in_turn_ = now - fetched_;
}

void ExchangeSchedule::End(uint64_t exchanged) {
  ended_ = clock_->Now();
  const Duration exchange = ended_ - began_ - in_turn_;
  meter_.Add(exchange, waited_);
  const Duration cost = exchange + waited_;
  cost_ = spent_ == Duration{} ? cost : (cost_ + cost) / 2;
  spent_ += cost;
  Stretch(exchanged);
}

// Of a worker that has exchanged so many examples: rounds grow with what was exchanged, then they
// are the same part of all.
double ExchangeSchedule::ExchangesLeft(double exchanged, double stretch) const {
  const auto all = static_cast<double>(plan_.examples);
  const double begin = std::max<double>(kLeastRound, exchanged);
  const double grown = std::max(begin, kTrainingPart / kUnexchangedPart * all);
  const double growth = std::log1p(stretch * kUnexchangedPart);
  return std::log(grown / begin) / growth +
         std::max(0.0, all - grown) / (stretch * kTrainingPart * all) + 1;
}

void ExchangeSchedule::Stretch(uint64_t exchanged) {
  if (plan_.share <= 0 || !plan_.paced || exchanged == 0) return;
  const double passed = Seconds(ended_ - begun_), spent = Seconds(spent_);
  const auto done = static_cast<double>(exchanged), all = static_cast<double>(plan_.examples);
  const double training = std::max(0.0, passed - spent);
  // All time is what is trained and what is exchanged.
  const double budget =
      plan_.share / (1 - plan_.share) * training * std::max(1.0, all / done) - spent;
  const double affordable = budget / std::max(Seconds(cost_), 1e-9);
  double least = 1, most = kMostStretch;
  if (ExchangesLeft(done, least) <= affordable) most = least;
  for (int i = 0; i < kBisections && most > least; ++i) {
    const double middle = std::sqrt(least * most);
    (ExchangesLeft(done, middle) <= affordable ? most : least) = middle;
  }
  stretch_ = most;
  spare_ = affordable - ExchangesLeft(done, stretch_);
}

}  // namespace shoal::learn::sparse
