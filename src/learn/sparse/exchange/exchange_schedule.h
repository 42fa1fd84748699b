// When a worker exchanges with the servers, and how many examples it trains until then.
//
// Quality asks for rounds that are short at first, when steps are long, and never a great part of
// all (docs/adr/0280). Beyond that a worker exchanges as often as is worth its time, which is
// measured: on a slow link, or where others are waited for, rarely. Where the parameter
// exchange_share bounds the time that exchanges may take, rounds become as long as it demands
// (docs/adr/0466).
//
// Used by training.h, by one thread at a time but for MeasureCost. The clock is the caller's.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "learn/sparse/exchange/exchange_meter.h"

namespace shoal::learn::sparse {

struct ExchangePlan {
  bool paced = false;     // else an exchange follows every round
  uint64_t examples = 0;  // that this worker trains over all epochs
  double share = 0;  // of its time, 0 to 1, for exchanges and waiting; 0: what quality asks for
};

class ExchangeSchedule {
 public:
  // At least so many examples are trained between two exchanges that are paced.
  static constexpr uint64_t kLeastRound = 32;
  // Examples of a round with several threads.
  static constexpr uint64_t kSharedRound = 1024;

  // `clock` (not owned) outlives it.
  ExchangeSchedule(const ExchangePlan& plan, const Clock* clock);

  // Whether an exchange is to begin now, with so many examples exchanged and not. `last`: nothing
  // is trained after it; `queued`: others wait until this worker has had its turn.
  bool IsDue(uint64_t exchanged, uint64_t unexchanged, bool last, bool queued);
  // As IsDue has found: the exchange must not be later, so that a turn is waited for.
  bool must() const { return must_; }
  // Likewise: at most so many examples until the next exchange.
  uint64_t next_round() const { return next_round_; }
  Duration since_last() const { return clock_->Now() - ended_; }

  // An exchange begins whose turn was asked for at `asked`.
  void Begin(TimePoint asked);
  // Between its halves the worker trains: called before that and after each round of it.
  void CountTraining();
  // Others may exchange frequent rows; returns nothing, `turn()` is how long they could not.
  void EndTurn() { turn_ = clock_->Now() - began_; }
  void End(uint64_t exchanged);
  // The worker has waited for slower ones, which is no part of a round.
  void Postpone(Duration waited) { ended_ += waited; }

  Duration turn() const { return turn_; }
  // Of a worker that has trained so many examples and moved so many bytes. Any thread.
  ExchangeCost MeasureCost(uint64_t examples, uint64_t bytes) const {
    return meter_.Read(clock_->Now(), examples, bytes);
  }

 private:
  double LongestRound(uint64_t exchanged) const;
  double ExchangesLeft(double exchanged, double stretch) const;
  // Lengthens rounds so that those which are left cost no more than the share.
  void Stretch(uint64_t exchanged);

  const ExchangePlan plan_;
  const Clock* const clock_;
  const TimePoint begun_;
  ExchangeMeter meter_;
  bool must_ = false;
  uint64_t next_round_ = 0;
  double stretch_ = 1;   // of what quality asks for
  double spare_ = 0;     // exchanges that the share allows beyond those
  TimePoint ended_;      // the last exchange, without what was waited since
  TimePoint began_{};    // the exchange under way
  TimePoint fetched_{};  // when its first half had ended; none: it has not
  Duration in_turn_{};   // what was trained between its halves
  Duration waited_{};    // for the turn, before it
  Duration turn_{};      // of the last one, as long as others had to wait for it
  Duration cost_{};      // smoothed, with the waiting
  Duration spent_{};     // in all exchanges, likewise
};

}  // namespace shoal::learn::sparse
