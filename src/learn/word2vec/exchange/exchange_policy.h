// When a row that several parties train must meet the others' changes (ADR 10): the one place to
// change for a better rule.
//
// Parties are workers (their cached rows against the servers') or threads (their copies of frequent
// rows against the worker's). Everybody adds what he moved a row by, so the sum overshoots when
// many parties move the same row far before they meet. What bounds it is the accumulated step: the
// sum of the learning rates of all gradient terms that reached the row since it was last exchanged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "learn/word2vec/params.h"

namespace shoal::learn::word2vec {

enum TableKind : uint8_t { kInput = 0, kOutput = 1 };
inline constexpr int kTables = 2;

// Plain data; a pure function of the parameters and the number of parties.
class ExchangePolicy {
 public:
  static constexpr double kStep = 40;     // bound of one party of one; falls with parties²
  static constexpr double kSweep = 38e6;  // words between sweeps; falls with parties⁴
  static constexpr double kLeastSweep = 6e4;
  static constexpr double kRound = 16e3;  // words between rounds; falls with parties²
  static constexpr double kLeastRound = 256;
  static constexpr double kReach = 8;        // logits
  static constexpr double kSignificant = 2;  // logits
  static constexpr double kWordsOfRow = 64;  // of a party, until it has come by every row
  static constexpr double kPathNodes = 12;   // of hierarchical softmax, about, whatever the text

  // A party that counts uses in `shares` separate places (a worker in its threads) is due when one
  // of them has reached its share of the bound.
  ExchangePolicy(const Params& params, int parties, int shares = 1)
      : parties_(std::max(1, parties)), shares_(std::max(1, shares)) {
    const auto window = static_cast<double>(params.window);
    const double outputs = params.hs ? kPathNodes : 1 + static_cast<double>(params.negative);
    // Gradient terms by one use: an occurrence is context in window + 1 windows on average, each
    // with all its outputs; an output row meets window + 1 contexts. With cbow one term for
    // each window and output.
    terms_[kInput] = (window + 1) * outputs;
    terms_[kOutput] = params.cbow ? 1 : window + 1;
    const double square = static_cast<double>(parties_) * parties_;
    step_ = kStep / square / shares_;
    sweep_words_ = params.stale_words > 0 ? static_cast<double>(params.stale_words)
                                          : std::max(kLeastSweep, kSweep / (square * square));
    always_complete_ = params.stale_words > 0 || parties_ == 1;
    round_words_ = params.exchange_words > 0 ? static_cast<double>(params.exchange_words)
                                             : std::max(kLeastRound, kRound / square);
  }

  // Uses of a row (occurrences as centre; for outputs draws as noise too) after which it is due.
  // One party alone is never due.
  uint16_t UsesUntilDue(TableKind table, double alpha) const {
    if (parties_ == 1) return UINT16_MAX;
    const double uses = step_ / (std::max(alpha, 1e-9) * terms_[table]);
    return static_cast<uint16_t>(std::clamp(uses, 1.0, 65534.0));
  }
  // What a party's movement of a row is scaled by when it is added. `moved` is its length,
  // `partner` the length of the rows that this one is multiplied with. When all parties have moved
  // the row alike, their sum changes its dot products by up to parties × moved × partner; beyond
  // kReach logits the sum overshoots, whatever the bound on steps says (few, frequent words), so it
  // is cut back to that, at most to the parties' mean.
  float Weight(double moved, double partner) const {
    const double reach = parties_ * moved * partner;
    return reach <= kReach ? 1.0f : static_cast<float>(std::max(kReach / reach, 1.0 / parties_));
  }
  // Whether a movement of this length is worth an exchange: when all parties have moved the row
  // alike, their sum changes its dot products by kSignificant or more. `partner` as for Weight;
  // where those rows are still short, as outputs are at first, 1 stands for it.
  bool Significant(double moved, double partner) const {
    return parties_ * moved * std::max(partner, 1.0) >= kSignificant;
  }
  // Words of a party between two sweeps, which exchange every row that has moved significantly.
  uint64_t sweep_words() const { return static_cast<uint64_t>(sweep_words_); }
  // One sweep in so many is complete: it exchanges every row that has changed at all, so that the
  // positions of the time before it are safe. A worker comes to it every kWordsOfRow words for each
  // of the rows, which costs at most 4 / kWordsOfRow rows a word, both tables and both ways.
  uint64_t SweepsUntilComplete(uint64_t rows) const {
    if (always_complete_) return 1;
    return static_cast<uint64_t>(std::ceil(kWordsOfRow * static_cast<double>(rows) / sweep_words_));
  }
  // Words of a party between two requests; what is due goes with the next one.
  uint64_t round_words() const { return static_cast<uint64_t>(round_words_); }

 private:
  int parties_;
  int shares_;
  double terms_[kTables] = {};
  double step_ = 0;
  bool always_complete_ = true;
  double sweep_words_ = 0;
  double round_words_ = 0;
};

}  // namespace shoal::learn::word2vec
