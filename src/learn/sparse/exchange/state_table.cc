#include "learn/sparse/exchange/state_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>

#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {
namespace {

constexpr uint64_t kPieceRows = 256;  // 128 KiB or somewhat more
constexpr uint64_t kRowFloats = 128;  // about, with the count
constexpr size_t kPieces = 4;         // on their way at a time, of one thread
constexpr auto kTimeout = std::chrono::seconds(180);

}  // namespace

// Rows of one request, and the memory that it uses.
struct StateTable::Piece {
  std::vector<ps::Key> rows;
  std::vector<float> deltas;
  std::vector<float> answers;
  ps::Ticket ticket;
};

StateTable::StateTable(ps::Client* client, uint64_t features, const Learner* learner)
    : client_(client),
      learner_(learner),
      features_(features),
      width_(learner->width()),
      row_features_(std::max<uint64_t>(1, (kRowFloats - 1) / width_)),
      row_values_(row_features_ * width_),
      row_floats_(row_values_ + 1),
      rows_((features + 1 + row_features_ - 1) / row_features_) {}

StateTable::~StateTable() {
  std::free(local_);
  std::free(base_);
  std::free(shift_);
}

// calloc: pages that nobody touches cost nothing.
float* StateTable::Allocate() const {
  return static_cast<float*>(std::calloc(rows_, row_values_ * sizeof(float)));
}

Result<std::unique_ptr<StateTable>> StateTable::Make(ps::Client* client, uint64_t features,
                                                     const Learner* learner) {
  std::unique_ptr<StateTable> table(new StateTable(client, features, learner));
  table->local_ = table->Allocate();
  if (table->local_ != nullptr) return table;
  return ResourceExhausted(fmt::format(
      "the state of {} features does not fit into memory; hash them (hash_bits)", features));
}

void StateTable::ToWeights(const float* state, float* weights) const {
  std::memcpy(weights, state, width_ * sizeof(float));
  for (const Slot& slot : learner_->slots())
    weights[slot.value] = WeightOf(slot, state[slot.value], state[slot.squares]);
}

void StateTable::ToState(float* floats) const {
  for (const Slot& slot : learner_->slots())
    floats[slot.value] = ValueOf(slot, floats[slot.value], floats[slot.squares]);
}

Status StateTable::Connect() {
  ps::TableSpec spec;
  spec.name = "state";
  spec.rows = rows_;
  spec.dim = static_cast<uint32_t>(row_floats_);
  spec.optimizer.kind = ps::OptimizerKind::kCombine;
  TRY_ASSIGN(table_, client_->CreateTable(spec, kTimeout));
  base_ = Allocate();
  shift_ = Allocate();
  if (base_ == nullptr || shift_ == nullptr)
    return ResourceExhausted("there is no memory for further copies of the state");
  used_.resize(rows_);
  pulled_.resize(rows_);
  seen_.resize(rows_);
  merge_states_.resize(rows_ * row_features_);
  // What was trained before the table was needed stays, as a change that the servers lack.
  for (uint64_t row = 0; row < rows_; ++row) used_[row] = Differs(row) ? 1 : 0;
  TRY(Pull(0, 1, RowSet::kAll));
  for (uint64_t row = 0; row < rows_; ++row) {
    for (uint64_t i = row * row_features_; i < (row + 1) * row_features_; ++i) {
      if (std::exchange(merge_states_[i], MergeState::kUntouched) == MergeState::kUntouched)
        continue;
      float* const local = local_ + i * width_;
      float* const base = base_ + i * width_;
      for (const Slot& slot : learner_->slots()) {
        local[slot.value] += shift_[i * width_ + slot.value];
        local[slot.squares] += base[slot.squares];
      }
      ToState(local);
      ToState(base);
    }
    pulled_[row] = 0;
  }
  return Status::Ok();
}

Status StateTable::Rebase(int server) {
  std::vector<ps::Key> keys;
  std::vector<float> theirs(kPieceRows * row_floats_);
  for (uint64_t row = 0; row < rows_; ++row) {
    if (client_->ServerOf(table_, row) == server) keys.push_back(row);
    if (keys.empty() || (row + 1 < rows_ && keys.size() < kPieceRows)) continue;
    TRY_ASSIGN(const ps::Ticket pull,
               client_->Pull(table_, keys, ps::Rows(theirs.data(), row_floats_)));
    TRY(client_->Wait(pull, kTimeout));
    for (size_t k = 0; k < keys.size(); ++k) {
      float* const base = base_ + keys[k] * row_values_;
      std::memcpy(base, theirs.data() + k * row_floats_, row_values_ * sizeof(float));
      seen_[keys[k]] = theirs[k * row_floats_ + row_values_];
      for (uint64_t i = 0; i < row_features_; ++i) ToState(base + i * width_);
    }
    keys.clear();
  }
  return Status::Ok();
}

bool StateTable::Differs(uint64_t row) const {
  return std::memcmp(local_ + row * row_values_, base_ + row * row_values_,
                     row_values_ * sizeof(float)) != 0;
}

void StateTable::Merge(uint64_t row, const float* theirs, RowSet which) {
  seen_[row] = theirs[row_values_];
  if (which == RowSet::kAll && ps::CombineCount(seen_[row]) == 0)
    return;  // as it began: all is change
  for (uint64_t f = 0; f < row_features_; ++f, theirs += width_) {
    const uint64_t feature = row * row_features_ + f;
    float* const local = local_ + feature * width_;
    float* const base = base_ + feature * width_;
    float* const shift = shift_ + feature * width_;
    // Every step of a feature adds to the squares of its first slot, or too little to be seen
    // there: then it waits for the next one that is.
    const uint32_t squares = learner_->slots()[0].squares;
    const bool known = theirs[squares] != 0 || local[squares] != 0;
    const bool steps = local[squares] != base[squares];
    const bool wanted = which == RowSet::kAll && known;
    if (!steps && theirs[squares] == base[squares] && !wanted) continue;
    const bool changed = steps || std::memcmp(local, base, width_ * sizeof(float)) != 0;
    merge_states_[feature] = changed ? MergeState::kChanged : MergeState::kTheirs;
    for (const Slot& slot : learner_->slots()) {
      const float from = base[slot.squares], to = local[slot.squares];
      const float now = theirs[slot.squares];
      const float began = WeightOf(slot, base[slot.value], from);
      const float moved = WeightOf(slot, local[slot.value], to) - began;
      local[slot.value] = began + StepRatio(slot.rate, from, to, now) * moved;
      local[slot.squares] = std::max(to, 0.0f) - std::max(from, 0.0f);
      shift[slot.value] = theirs[slot.value] - began;
      base[slot.value] = theirs[slot.value];
      base[slot.squares] = now;
    }
  }
}

void StateTable::StoreDelta(uint64_t row, float* delta) const {
  std::fill_n(delta, row_values_, 0.0f);
  delta[row_values_] = seen_[row];
  for (uint64_t f = 0; f < row_features_; ++f, delta += width_) {
    const float* const local = local_ + (row * row_features_ + f) * width_;
    const float* const base = base_ + (row * row_features_ + f) * width_;
    if (std::memcmp(local, base, width_ * sizeof(float)) == 0) continue;
    for (const Slot& slot : learner_->slots()) {
      const float to = local[slot.squares], from = base[slot.squares];
      delta[slot.value] =
          WeightOf(slot, local[slot.value], to) - WeightOf(slot, base[slot.value], from);
      delta[slot.squares] = std::max(to, 0.0f) - std::max(from, 0.0f);
    }
  }
}

void StateTable::ApplyStoreAnswer(uint64_t row, const float* answer) {
  float* const base = base_ + row * row_values_;
  const bool whole = ps::CombineCount(answer[row_values_]) - 1 == ps::CombineCount(seen_[row]);
  seen_[row] = answer[row_values_];
  if (whole) {
    std::memcpy(base, local_ + row * row_values_, row_values_ * sizeof(float));
    return;
  }
  // A server that came back has other pushes behind it than this one knew: the rest goes next time.
  partial_pushes_.fetch_add(1, std::memory_order_relaxed);
  std::memcpy(base, answer, row_values_ * sizeof(float));
  for (uint64_t f = 0; f < row_features_; ++f) ToState(base + f * width_);
}

bool StateTable::PushDelta(uint64_t row, float* delta) const {
  bool any = false;
  for (uint64_t f = 0; f < row_features_; ++f, delta += width_) {
    const uint64_t feature = row * row_features_ + f;
    std::fill_n(delta, width_, 0.0f);
    if (merge_states_[feature] != MergeState::kChanged) continue;
    const uint64_t at = feature * width_;
    for (const Slot& slot : learner_->slots()) {
      delta[slot.value] =
          local_[at + slot.value] + shift_[at + slot.value] - base_[at + slot.value];
      delta[slot.squares] = local_[at + slot.squares];
      any = any || delta[slot.value] != 0 || delta[slot.squares] != 0;
    }
  }
  *delta = seen_[row];
  return any;
}

void StateTable::FinishMerge(uint64_t row, const float* delta, const float* answer) {
  float left = 0;  // of the push: what was not taken
  if (delta != nullptr) {
    const uint32_t seen = ps::CombineCount(seen_[row]);
    const uint32_t before = ps::CombineCount(answer[row_values_]) - 1;
    left = 1 - ps::CombineShare(before, seen);
    if (left > 0) partial_pushes_.fetch_add(1, std::memory_order_relaxed);
  }
  const uint32_t squares = learner_->slots()[0].squares;
  for (uint64_t f = 0; f < row_features_; ++f) {
    const uint64_t feature = row * row_features_ + f;
    float* const local = local_ + feature * width_;
    float* const base = base_ + feature * width_;
    const float* const theirs = answer == nullptr ? base : answer + f * width_;
    const bool met =
        std::exchange(merge_states_[feature], MergeState::kUntouched) != MergeState::kUntouched;
    if (!met && theirs[squares] == base[squares]) continue;
    std::memmove(base, theirs, width_ * sizeof(float));
    std::memcpy(local, base, width_ * sizeof(float));
    if (left > 0 && met) {
      for (uint64_t i = 0; i < width_; ++i) local[i] += left * delta[f * width_ + i];
    }
    ToState(local);
    ToState(base);
  }
  pulled_[row] = 0;
}

// Goes through the part's rows in pieces, of which several are under way at a time: fill(row,
// piece) adds a row or not, finish(piece) sees the answers, in order.
template <typename Fill, typename Issue, typename Finish>
Status StateTable::InPieces(Range rows, const Fill& fill, const Issue& issue,
                            const Finish& finish) {
  std::deque<std::unique_ptr<Piece>> under_way;
  std::unique_ptr<Piece> free;
  Status status;
  for (uint64_t row = rows.begin; status.ok() && (row < rows.end || !under_way.empty());) {
    if (under_way.size() < kPieces && row < rows.end) {
      if (free == nullptr) free = std::make_unique<Piece>();
      free->rows.clear();
      free->deltas.resize(kPieceRows * row_floats_);
      free->answers.resize(kPieceRows * row_floats_);
      for (; row < rows.end && free->rows.size() < kPieceRows; ++row) fill(row, free.get());
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
  return InPieces(
      {rows_ * part / parts, rows_ * (part + 1) / parts},
      [this, which](uint64_t row, Piece* piece) {
        if ((used_[row] == 0 || which == RowSet::kChanged) && Differs(row)) {
          used_[row] = 1;
        } else if (which == RowSet::kChanged || (which == RowSet::kUsed && used_[row] == 0)) {
          return;
        }
        piece->rows.push_back(row);
      },
      [this](Piece* piece) {
        return client_->Pull(table_, piece->rows, ps::Rows(piece->answers.data(), row_floats_));
      },
      [this, which](const Piece& piece) {
        const float* theirs = piece.answers.data();
        for (const ps::Key row : piece.rows) {
          Merge(row, theirs, which);
          pulled_[row] = 1;
          theirs += row_floats_;
        }
      });
}

Status StateTable::Push(size_t part, size_t parts) {
  return InPieces(
      {rows_ * part / parts, rows_ * (part + 1) / parts},
      [this](uint64_t row, Piece* piece) {
        if (pulled_[row] == 0) return;
        if (PushDelta(row, piece->deltas.data() + piece->rows.size() * row_floats_)) {
          piece->rows.push_back(row);
        } else {
          FinishMerge(row, nullptr, nullptr);
        }
      },
      [this](Piece* piece) {
        return client_->PushPull(table_, piece->rows,
                                 ps::ConstRows(piece->deltas.data(), row_floats_),
                                 ps::Rows(piece->answers.data(), row_floats_));
      },
      [this](const Piece& piece) {
        for (size_t i = 0; i < piece.rows.size(); ++i)
          FinishMerge(piece.rows[i], piece.deltas.data() + i * row_floats_,
                      piece.answers.data() + i * row_floats_);
      });
}

Status StateTable::Store(size_t part, size_t parts) {
  return InPieces(
      {rows_ * part / parts, rows_ * (part + 1) / parts},
      [this](uint64_t row, Piece* piece) {
        if (!Differs(row)) return;
        used_[row] = 1;
        StoreDelta(row, piece->deltas.data() + piece->rows.size() * row_floats_);
        piece->rows.push_back(row);
      },
      [this](Piece* piece) {
        return client_->PushPull(table_, piece->rows,
                                 ps::ConstRows(piece->deltas.data(), row_floats_),
                                 ps::Rows(piece->answers.data(), row_floats_));
      },
      [this](const Piece& piece) {
        for (size_t i = 0; i < piece.rows.size(); ++i)
          ApplyStoreAnswer(piece.rows[i], piece.answers.data() + i * row_floats_);
      });
}

void StateTable::Replay(const Row& row, bool with_bias, float weight, std::vector<float>* scratch) {
  const sparse::Merge merge{
      local_, base_, shift_, merge_states_.data(), width_, with_bias ? features_ : UINT64_MAX};
  sparse::Replay(*learner_, merge, row, weight, scratch);
}

}  // namespace shoal::learn::sparse
