#include "learn/sparse/exchange/state_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>

#include "learn/sparse/exchange/merge_kernels_scalar.h"
#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {
namespace {

constexpr uint64_t kPieceRows = 512;
constexpr uint64_t kRowFloats = 32;  // at most, of several features; and the count
constexpr size_t kPieces = 4;        // on their way at a time, of one thread
// ADR 430. As many examples of all workers may move a feature without a replay.
constexpr int kUnmetUses = 64;
constexpr size_t kAhead = 6;          // rows that are prefetched
constexpr uint64_t kLineFloats = 16;  // of a cache line
constexpr auto kTimeout = std::chrono::seconds(180);

// The first of [row, end) whose mark is not 0, or `end`.
uint64_t NextMarked(const std::vector<uint8_t>& marks, uint64_t row, uint64_t end) {
  while (row < end && marks[row] == 0) {
    uint64_t eight = 1;
    if (row + sizeof(eight) <= end) std::memcpy(&eight, &marks[row], sizeof(eight));
    row += eight == 0 ? sizeof(eight) : 1;
  }
  return row;
}

}  // namespace

// Rows of one request, and the memory that it uses.
struct StateTable::Piece {
  std::vector<ps::Key> rows;
  std::vector<float> deltas;
  std::vector<float> answers;
  ps::Ticket ticket;
};

RowLayout::RowLayout(uint64_t of_all, uint32_t width, uint64_t classes_of_learner)
    : classes(classes_of_learner),
      shift(static_cast<uint32_t>(std::bit_width(std::max<uint64_t>(1, kRowFloats / width))) - 1),
      features(uint64_t{1} << shift),
      values(features * width),
      floats(values + 1),
      rows((of_all + features) >> shift),
      bias_row((classes == 1 ? of_all : of_all - std::min(of_all, classes)) >> shift) {}

StateTable::StateTable(ps::Client* client, uint64_t features, const Learner* learner,
                       const MergeKernels* kernels)
    : client_(client),
      learner_(learner),
      kernels_(kernels),
      slots_(learner->slots()),
      runs_(RunsOf(slots_)),
      features_(features),
      width_(learner->width()),
      pairs_(width_ == 2 && slots_.size() == 1),
      layout_(features, learner->width(), learner->classes()) {}

StateTable::~StateTable() {
  std::free(local_);
  std::free(base_);
  std::free(shift_);
}

// calloc: pages that are never touched cost nothing.
float* StateTable::Allocate() const {
  return static_cast<float*>(std::calloc(layout_.rows, layout_.values * sizeof(float)));
}

Result<std::unique_ptr<StateTable>> StateTable::Make(ps::Client* client, uint64_t features,
                                                     const Learner* learner,
                                                     std::string_view simd) {
  TRY_ASSIGN(const MergeKernels* kernels, ChooseMergeKernels(simd));
  std::unique_ptr<StateTable> table(new StateTable(client, features, learner, kernels));
  table->local_ = table->Allocate();
  table->used_.resize(table->layout_.rows);
  table->marks_.resize(table->layout_.rows);
  if (table->local_ != nullptr) return table;
  return ResourceExhausted(fmt::format(
      "the state of {} features does not fit into memory; hash them (hash_bits)", features));
}

Status StateTable::Connect() {
  ps::TableSpec spec;
  spec.name = "state";
  spec.rows = layout_.rows;
  spec.dim = static_cast<uint32_t>(layout_.floats);
  spec.optimizer.kind = ps::OptimizerKind::kCombine;
  const Result<ps::TableRef> created = client_->CreateTable(spec, kTimeout);
  if (created.status().code() == Code::kAlreadyExists) {
    return FailedPrecondition(
        "the servers hold the state of this training in rows of another shape, as a checkpoint of "
        "an earlier release has them, which cannot be continued; delete the checkpoint and run the "
        "job anew, or let the release that began it finish it");
  }
  TRY_ASSIGN(table_, created);
  base_ = Allocate();
  shift_ = Allocate();
  if (base_ == nullptr || shift_ == nullptr)
    return ResourceExhausted("there is no memory for further copies of the state");
  pulled_.resize(layout_.rows);
  seen_.resize(layout_.rows);
  merge_states_.resize(layout_.rows * layout_.features);
  expected_.resize(layout_.rows * layout_.features);
  // What was trained before the table was needed stays, as a change that the servers lack.
  for (uint64_t row = 0; row < layout_.rows; ++row) {
    if (Differs(row)) used_[row] = marks_[row] = 1;
  }
  return TakeAll();
}

Status StateTable::TakeAll() {
  TRY(Pull(0, 1, RowSet::kAll));
  Adopt(0, 1);
  std::fill(merge_states_.begin(), merge_states_.end(), MergeState::kUntouched);
  std::fill(pulled_.begin(), pulled_.end(), uint8_t{0});
  return Status::Ok();
}

void StateTable::Expect(const Row& row, uint64_t bias) {
  const auto mark = [this](uint64_t feature) {
    std::atomic_ref(expected_[feature]).store(1, std::memory_order_relaxed);
  };
  for (uint32_t i = 0; i < row.count; ++i) mark(row.features[i]);
  if (bias != UINT64_MAX) mark(bias);
}

void StateTable::ShareWith(int workers) {
  frequent_uses_ = static_cast<uint8_t>(std::max(1, kUnmetUses / std::max(1, workers)));
}

void StateTable::Use(std::span<const uint32_t> features) {
  for (const uint32_t feature : features) used_[feature / layout_.features] = 1;
  used_[features_ / layout_.features] = 1;
}

Status StateTable::Rebase(int server) {
  std::vector<ps::Key> keys;
  std::vector<float> theirs(kPieceRows * layout_.floats);
  for (uint64_t row = 0; row < layout_.rows; ++row) {
    if (client_->ServerOf(table_, row) == server) keys.push_back(row);
    if (keys.empty() || (row + 1 < layout_.rows && keys.size() < kPieceRows)) continue;
    TRY_ASSIGN(const ps::Ticket pull,
               client_->Pull(table_, keys, ps::Rows(theirs.data(), layout_.floats)));
    TRY(client_->Wait(pull, kTimeout));
    for (size_t k = 0; k < keys.size(); ++k) {
      float* const base = base_ + keys[k] * layout_.values;
      std::memcpy(base, theirs.data() + k * layout_.floats, layout_.values * sizeof(float));
      seen_[keys[k]] = theirs[k * layout_.floats + layout_.values];
      TakeNewer(keys[k], base);
      if (Differs(keys[k])) used_[keys[k]] = marks_[keys[k]] = 1;
    }
    keys.clear();
  }
  return Status::Ok();
}

// Squares grow with every gradient: whose are greater knows more of a feature.
void StateTable::TakeNewer(uint64_t row, const float* theirs) {
  float* local = local_ + row * layout_.values;
  for (uint64_t f = 0; f < layout_.features; ++f, local += width_, theirs += width_) {
    if (local[slots_[0].squares] >= theirs[slots_[0].squares]) continue;
    for (const Slot& slot : slots_) {
      local[slot.squares] = theirs[slot.squares];
      local[slot.value] = ValueOf(slot, theirs[slot.value], theirs[slot.squares]);
    }
  }
}

// Every step of a feature adds to the squares of its first slot, or too little to be seen there:
// then it waits for the next one that is.
bool StateTable::Differs(uint64_t row) const {
  const uint64_t end = (row + 1) * layout_.values;
  for (uint64_t at = row * layout_.values + slots_[0].squares; at < end; at += width_) {
    if (local_[at] != base_[at]) return true;
  }
  return false;
}

// Slots [run.first, run.first + run.count) of a feature, or the only slot of a row's features.
inline SlotBlock StateTable::BlockAt(uint64_t feature, const SlotRun& run) const {
  const uint64_t at = feature * width_ + slots_[run.first].value;
  return {&slots_[run.first],
          run.count,
          size_t{slots_[run.first].squares} - slots_[run.first].value,
          local_ + at,
          base_ == nullptr ? nullptr : base_ + at,
          shift_ == nullptr ? nullptr : shift_ + at};
}

void StateTable::MergeRow(uint64_t row, const float* theirs, RowSet which) {
  seen_[row] = theirs[layout_.values];
  pulled_[row] = 1;
  const bool all = which == RowSet::kAll;
  if (all && ps::CombineCount(seen_[row]) == 0) return;  // as it began: all is change
  const uint64_t first = row * layout_.features;
  if (pairs_) {
    kernels_->merge_pairs(BlockAt(first, {0, layout_.features}), theirs, all,
                          &merge_states_[first]);
    return;
  }
  const uint32_t squares = slots_[0].squares;
  for (uint64_t feature = first; feature < first + layout_.features; ++feature, theirs += width_) {
    const float own = local_[feature * width_ + squares], had = base_[feature * width_ + squares];
    const bool steps = own != had;
    const bool known = theirs[squares] != 0 || own != 0;
    if (!steps && theirs[squares] == had && !(all && known)) continue;
    const bool replayed = which == RowSet::kFrequent || expected_[feature] != 0;
    if (replayed) merge_states_[feature] = steps ? MergeState::kChanged : MergeState::kTheirs;
    for (const SlotRun& run : runs_) {
      const SlotBlock block = BlockAt(feature, run);
      const float* const their = theirs + slots_[run.first].value;
      if (run.count == 1) {
        replayed ? MergeSlot(block, their, steps) : AbsorbSlot(block, their, steps);
      } else {
        (replayed ? kernels_->merge_run : kernels_->absorb_run)(block, their, steps);
      }
    }
  }
}

void StateTable::Adopt(size_t part, size_t parts) {
  const uint64_t end = layout_.rows * (part + 1) / parts;
  for (uint64_t row = layout_.rows * part / parts; (row = NextMarked(pulled_, row, end)) < end;
       ++row) {
    const uint64_t first = row * layout_.features;
    if (pairs_) {
      kernels_->adopt_pairs(BlockAt(first, {0, layout_.features}), &merge_states_[first]);
      continue;
    }
    for (uint64_t feature = first; feature < first + layout_.features; ++feature) {
      if (merge_states_[feature] == MergeState::kUntouched) continue;
      for (const SlotRun& run : runs_) {
        const SlotBlock block = BlockAt(feature, run);
        if (run.count == 1) {
          AdoptSlot(*block.slot, block.gap, block.local, block.base, block.shift);
        } else {
          kernels_->adopt_run(block);
        }
      }
    }
  }
}

bool StateTable::StoreDelta(uint64_t row, float* delta) const {
  delta[layout_.values] = seen_[row];
  const uint64_t first = row * layout_.features;
  if (pairs_)
    return kernels_->beyond_pairs(BlockAt(first, {0, layout_.features}), &merge_states_[first],
                                  delta);
  std::fill_n(delta, layout_.values, 0.0f);
  bool any = false;
  const uint32_t squares = slots_[0].squares;
  for (uint64_t feature = first; feature < first + layout_.features; ++feature, delta += width_) {
    const uint64_t at = feature * width_ + squares;
    if (local_[at] == base_[at] && merge_states_[feature] != MergeState::kChanged) continue;
    any = true;
    for (const SlotRun& run : runs_) {
      const SlotBlock block = BlockAt(feature, run);
      float* const to = delta + slots_[run.first].value;
      if (run.count == 1) {
        BeyondSlot(*block.slot, block.gap, block.local, block.base, to);
      } else {
        kernels_->beyond_run(block, to);
      }
    }
  }
  return any;
}

void StateTable::Pushed(uint64_t row, const float* delta, const float* answer, bool alone) {
  const uint32_t before = ps::CombineCount(answer[layout_.values]) - 1;
  const float left = 1 - ps::CombineShare(before, ps::CombineCount(seen_[row]));
  if (left > 0) marks_[row] |= 1;
  seen_[row] = answer[layout_.values];
  if (left > 0) partial_pushes_.fetch_add(1, std::memory_order_relaxed);
  for (uint64_t f = 0; f < layout_.features; ++f, delta += width_, answer += width_) {
    float* const local = local_ + (row * layout_.features + f) * width_;
    float* const base = base_ + (row * layout_.features + f) * width_;
    if (left > 0) {
      std::memcpy(base, answer, width_ * sizeof(float));
      if (alone) continue;
      for (const Slot& slot : slots_) {
        const float n = base[slot.squares] + left * delta[slot.squares];
        local[slot.value] = ValueOf(slot, base[slot.value] + left * delta[slot.value], n);
        local[slot.squares] = n;
      }
      continue;
    }
    // As the servers add: B then has the same bits.
    for (const Slot& slot : slots_) {
      base[slot.value] += delta[slot.value];
      base[slot.squares] += delta[slot.squares];
      local[slot.squares] = base[slot.squares];
    }
  }
}

// Goes through the part's rows in pieces, of which several are under way at a time: fill(row,
// piece) adds a row or not, finish(piece) sees the answers, in order.
// `marks`, if any: rows whose mark is 0 are left out.
template <typename Fill, typename Issue, typename Finish>
Status StateTable::InPieces(Range rows, const std::vector<uint8_t>* marks, const Fill& fill,
                            const Issue& issue, const Finish& finish) {
  std::deque<std::unique_ptr<Piece>> under_way;
  std::unique_ptr<Piece> free;
  Status status;
  for (uint64_t row = rows.begin; status.ok() && (row < rows.end || !under_way.empty());) {
    if (under_way.size() < kPieces && row < rows.end) {
      if (free == nullptr) free = std::make_unique<Piece>();
      free->rows.clear();
      free->deltas.resize(kPieceRows * layout_.floats);
      free->answers.resize(kPieceRows * layout_.floats);
      for (; free->rows.size() < kPieceRows; ++row) {
        if (marks != nullptr) row = NextMarked(*marks, row, rows.end);
        if (row == rows.end) break;
        fill(row, free.get());
      }
      if (free->rows.empty()) continue;
      Result<ps::Ticket> ticket = issue(free.get());
      status = ticket.status();
      if (ticket.ok()) free->ticket = *ticket;
      under_way.push_back(std::move(free));
      continue;
    }
    status = client_->Wait(under_way.front()->ticket, kTimeout);
    if (!status.ok()) break;
    free = std::move(under_way.front());
    under_way.pop_front();
    finish(*free);
  }
  // An unanswered request may still write into its piece: it is given up with it. The job ends now.
  for (std::unique_ptr<Piece>& piece : under_way) (void)piece.release();
  return status;
}

Status StateTable::Pull(size_t part, size_t parts, RowSet which) {
  const Range rows{layout_.rows * part / parts, layout_.rows * (part + 1) / parts};
  const bool frequent = which == RowSet::kFrequent;
  for (uint64_t row = std::max(rows.begin, layout_.bias_row); frequent && row < rows.end; ++row)
    marks_[row] |= frequent_uses_;
  return InPieces(
      rows, frequent ? &marks_ : nullptr,
      [this, which, frequent](uint64_t row, Piece* piece) {
        if (frequent && (marks_[row] & kUses) < frequent_uses_) return;
        if (which == RowSet::kUsed && used_[row] == 0) {
          if (!Differs(row)) return;
          used_[row] = 1;
        }
        marks_[row] &= kUses;
        piece->rows.push_back(row);
      },
      [this](Piece* piece) {
        return client_->Pull(table_, piece->rows, ps::Rows(piece->answers.data(), layout_.floats));
      },
      [this, which](const Piece& piece) {
        const float* theirs = piece.answers.data();
        for (const ps::Key row : piece.rows) {
          MergeRow(row, theirs, which);
          theirs += layout_.floats;
        }
      });
}

Result<ps::Ticket> StateTable::IssuePush(Piece* piece) {
  return client_->PushPull(table_, piece->rows, ps::ConstRows(piece->deltas.data(), layout_.floats),
                           ps::Rows(piece->answers.data(), layout_.floats));
}

void StateTable::FinishPush(const Piece& piece, bool alone) {
  for (size_t i = 0; i < piece.rows.size(); ++i)
    Pushed(piece.rows[i], piece.deltas.data() + i * layout_.floats,
           piece.answers.data() + i * layout_.floats, alone);
}

template <typename Wanted>
Status StateTable::PushRows(Range rows, const std::vector<uint8_t>* marks, const Wanted& wanted,
                            bool alone) {
  return InPieces(
      rows, marks,
      [&](uint64_t row, Piece* piece) {
        if (!wanted(row)) return;
        float* const delta = piece->deltas.data() + piece->rows.size() * layout_.floats;
        if (StoreDelta(row, delta)) piece->rows.push_back(row);
      },
      [this](Piece* piece) { return IssuePush(piece); },
      [this, alone](const Piece& piece) { FinishPush(piece, alone); });
}

Status StateTable::Push(size_t part, size_t parts) {
  const Range rows{layout_.rows * part / parts, layout_.rows * (part + 1) / parts};
  const Status status = PushRows(
      rows, &pulled_,
      [this](uint64_t row) {
        marks_[row] &= kNeeded;
        return true;
      },
      false);
  for (uint64_t row = rows.begin; (row = NextMarked(pulled_, row, rows.end)) < rows.end; ++row) {
    pulled_[row] = 0;
    std::fill_n(&merge_states_[row * layout_.features], layout_.features, MergeState::kUntouched);
    std::fill_n(&expected_[row * layout_.features], layout_.features, uint8_t{0});
  }
  return status;
}

// Pushes that an exchange of the rest has under way.
class StateTable::PushQueue {
 public:
  explicit PushQueue(StateTable* table) : table_(table) {}
  // As InPieces: what is unanswered is given up with the job.
  ~PushQueue() {
    for (std::unique_ptr<Piece>& piece : under_way_) (void)piece.release();
  }

  // An empty one to fill.
  std::unique_ptr<Piece> NewPiece() {
    std::unique_ptr<Piece> piece = free_ ? std::move(free_) : std::make_unique<Piece>();
    piece->rows.clear();
    piece->deltas.resize(kPieceRows * table_->layout_.floats);
    piece->answers.resize(kPieceRows * table_->layout_.floats);
    return piece;
  }
  Status Send(std::unique_ptr<Piece> piece) {
    if (piece->rows.empty()) {
      free_ = std::move(piece);
      return Status::Ok();
    }
    TRY_ASSIGN(piece->ticket, table_->IssuePush(piece.get()));
    under_way_.push_back(std::move(piece));
    return under_way_.size() <= kPieces ? Status::Ok() : FinishOne();
  }
  Status FinishAll() {
    while (!under_way_.empty()) TRY(FinishOne());
    return Status::Ok();
  }

 private:
  Status FinishOne() {
    TRY(table_->client_->Wait(under_way_.front()->ticket, kTimeout));
    free_ = std::move(under_way_.front());
    under_way_.pop_front();
    table_->FinishPush(*free_, false);
    return Status::Ok();
  }

  StateTable* const table_;
  std::deque<std::unique_ptr<Piece>> under_way_;
  std::unique_ptr<Piece> free_;
};

void StateTable::MergeAtOnce(uint64_t row, const float* theirs) {
  const uint64_t first = row * layout_.features;
  MergeRow(row, theirs, RowSet::kUsed);
  pulled_[row] = 0;
  if (!pairs_) return;
  kernels_->adopt_pairs(BlockAt(first, {0, layout_.features}), &merge_states_[first]);
  std::fill_n(&merge_states_[first], layout_.features, MergeState::kUntouched);
}

// Every piece is pushed as soon as it is pulled: few others push the same rows meanwhile.
Status StateTable::ExchangeRest(size_t part, size_t parts, RestSet which) {
  const Range rows{layout_.rows * part / parts, layout_.rows * (part + 1) / parts};
  for (uint64_t row = rows.begin; which == RestSet::kUsed && row < rows.end; ++row) {
    if (used_[row] != 0) marks_[row] |= kNeeded;
  }
  PushQueue pushes(this);
  Status pushed;
  const Status pulled = InPieces(
      rows, &marks_,
      [this, needed = which != RestSet::kTouched](uint64_t row, Piece* piece) {
        if (needed || (marks_[row] & kUses) != 0) piece->rows.push_back(row);
      },
      [this](Piece* piece) {
        return client_->Pull(table_, piece->rows, ps::Rows(piece->answers.data(), layout_.floats));
      },
      [&](const Piece& piece) {
        if (!pushed.ok()) return;
        std::unique_ptr<Piece> push = pushes.NewPiece();
        const float* theirs = piece.answers.data();
        for (size_t i = 0; i < piece.rows.size(); ++i) {
          const ps::Key row = piece.rows[i];
          const uint64_t ahead = piece.rows[std::min(i + kAhead, piece.rows.size() - 1)];
          for (uint64_t f = 0; f < layout_.values; f += kLineFloats) {
            __builtin_prefetch(local_ + ahead * layout_.values + f, 1);
            __builtin_prefetch(base_ + ahead * layout_.values + f, 1);
          }
          MergeAtOnce(row, theirs);
          theirs += layout_.floats;
          if ((std::exchange(marks_[row], uint8_t{0}) & kUses) == 0) continue;
          float* const delta = push->deltas.data() + push->rows.size() * layout_.floats;
          if (StoreDelta(row, delta)) push->rows.push_back(row);
        }
        pushed = pushes.Send(std::move(push));
      });
  TRY(pulled);
  TRY(pushed);
  return pushes.FinishAll();
}

Status StateTable::Store(size_t part, size_t parts) {
  return PushRows(
      {layout_.rows * part / parts, layout_.rows * (part + 1) / parts}, nullptr,
      [this](uint64_t row) {
        if (!Differs(row)) return false;
        used_[row] = 1;
        return true;
      },
      true);
}

Merge StateTable::MergeWith(uint64_t bias) {
  return {local_, shift_, merge_states_.data(), width_, bias, kernels_, runs_};
}

float StateTable::ReplayMargin(const Row& row, uint64_t bias, std::vector<float>* scratch) {
  return sparse::ReplayMargin(*learner_, MergeWith(bias), row, scratch);
}

void StateTable::Replay(const Replayed& example, uint64_t bias, std::vector<float>* scratch) {
  sparse::Replay(*learner_, MergeWith(bias), example, scratch);
}

}  // namespace shoal::learn::sparse
