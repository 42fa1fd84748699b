#include "learn/sparse/state_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {
namespace {

constexpr uint64_t kPieceRows = 256;  // 128 KiB or somewhat more
constexpr uint64_t kRowFloats = 128;  // about
constexpr size_t kPieces = 4;         // on their way at a time, of one thread
constexpr auto kPatience = std::chrono::seconds(180);

}  // namespace

// Rows of one request, and the memory that it uses.
struct StateTable::Piece {
  std::vector<ps::Key> changed;  // pushed and pulled
  std::vector<ps::Key> others;   // pulled
  std::vector<float> deltas;
  std::vector<float> fresh;  // of changed, then of others
  ps::Ticket push;
  ps::Ticket pull;
};

StateTable::StateTable(ps::Client* client, uint64_t features, uint32_t width)
    : client_(client),
      features_(features),
      width_(width),
      row_features_(std::max<uint64_t>(1, kRowFloats / width)),
      row_floats_(row_features_ * width),
      rows_((features + 1 + row_features_ - 1) / row_features_) {}

StateTable::~StateTable() {
  std::free(local_);
  std::free(base_);
}

// calloc: pages that nobody touches cost nothing.
float* StateTable::Allocate() const {
  return static_cast<float*>(std::calloc(rows_, row_floats_ * sizeof(float)));
}

Result<std::unique_ptr<StateTable>> StateTable::Make(ps::Client* client, uint64_t features,
                                                     uint32_t width) {
  std::unique_ptr<StateTable> table(new StateTable(client, features, width));
  table->local_ = table->Allocate();
  if (table->local_ != nullptr) return table;
  return ResourceExhausted(fmt::format(
      "the state of {} features does not fit into memory; hash them (hash_bits)", features));
}

Status StateTable::Connect() {
  ps::TableSpec spec;
  spec.name = "state";
  spec.rows = rows_;
  spec.dim = static_cast<uint32_t>(row_floats_);
  spec.optimizer.kind = ps::OptimizerKind::kAdd;
  TRY_ASSIGN(table_, client_->CreateTable(spec, kPatience));
  base_ = Allocate();
  if (base_ == nullptr)
    return ResourceExhausted("there is no memory for a second copy of the state");
  used_.resize(rows_);
  std::vector<float> theirs(kPieceRows * row_floats_);
  for (uint64_t first = 0; first < rows_; first += kPieceRows) {
    const uint64_t count = std::min(kPieceRows, rows_ - first);
    TRY(client_->PullRange(table_, first, count, ps::Rows(theirs.data(), row_floats_), kPatience));
    // What was trained before the table was needed stays, as a change that the servers lack.
    float* const base = base_ + first * row_floats_;
    float* const local = local_ + first * row_floats_;
    for (size_t i = 0; i < count * row_floats_; ++i) {
      if (theirs[i] == 0) continue;
      base[i] = theirs[i];
      local[i] += theirs[i];
    }
  }
  return Status::Ok();
}

Status StateTable::Rebase(int server) {
  std::vector<ps::Key> keys;
  std::vector<float*> rows;
  for (uint64_t row = 0; row < rows_; ++row) {
    if (client_->ServerOf(table_, row) == server) {
      keys.push_back(row);
      rows.push_back(base_ + row * row_floats_);
    }
    if (keys.empty() || (row + 1 < rows_ && keys.size() < kPieceRows)) continue;
    TRY_ASSIGN(const ps::Ticket pull, client_->Pull(table_, keys, ps::Rows(rows.data())));
    TRY(client_->Wait(pull, kPatience));
    keys.clear();
    rows.clear();
  }
  return Status::Ok();
}

void StateTable::SetDamping(const Learner* learner, int workers) {
  damper_ = workers > 1 ? learner : nullptr;
  // What others push is seen up to kStaleness rounds late, and answered once more in each.
  others_ = static_cast<float>((1 + kStaleness) * static_cast<uint32_t>(workers) - 1);
}

void StateTable::Fill(uint64_t first, uint64_t end, bool all, Piece* piece) {
  piece->changed.clear();
  piece->others.clear();
  piece->deltas.resize(kPieceRows * row_floats_);
  piece->fresh.resize(kPieceRows * row_floats_);
  for (uint64_t row = first; row < end; ++row) {
    const float* const local = local_ + row * row_floats_;
    const float* const base = base_ + row * row_floats_;
    if (std::memcmp(local, base, row_floats_ * sizeof(float)) == 0) {
      if (all || used_[row] != 0) piece->others.push_back(row);
      continue;
    }
    float* const delta = piece->deltas.data() + piece->changed.size() * row_floats_;
    for (uint64_t i = 0; i < row_floats_; ++i) delta[i] = local[i] - base[i];
    for (uint64_t i = 0; damper_ != nullptr && i < row_floats_; i += width_)
      damper_->Damp(delta + i, local + i, others_);
    piece->changed.push_back(row);
    used_[row] = 1;
  }
}

Status StateTable::Issue(Piece* piece) {
  float* const fresh = piece->fresh.data();
  if (!piece->changed.empty()) {
    TRY_ASSIGN(piece->push, client_->PushPull(table_, piece->changed,
                                              ps::ConstRows(piece->deltas.data(), row_floats_),
                                              ps::Rows(fresh, row_floats_)));
  }
  if (!piece->others.empty()) {
    TRY_ASSIGN(piece->pull,
               client_->Pull(table_, piece->others,
                             ps::Rows(fresh + piece->changed.size() * row_floats_, row_floats_)));
  }
  return Status::Ok();
}

Status StateTable::Finish(Piece* piece) {
  if (!piece->changed.empty()) TRY(client_->Wait(piece->push, kPatience));
  if (!piece->others.empty()) TRY(client_->Wait(piece->pull, kPatience));
  const float* fresh = piece->fresh.data();
  for (const auto* keys : {&piece->changed, &piece->others}) {
    for (const ps::Key row : *keys) {
      std::memcpy(local_ + row * row_floats_, fresh, row_floats_ * sizeof(float));
      std::memcpy(base_ + row * row_floats_, fresh, row_floats_ * sizeof(float));
      fresh += row_floats_;
    }
  }
  return Status::Ok();
}

Status StateTable::Exchange(size_t part, size_t parts, bool all) {
  const uint64_t begin = rows_ * part / parts;
  const uint64_t end = rows_ * (part + 1) / parts;
  std::deque<std::unique_ptr<Piece>> under_way;
  std::unique_ptr<Piece> free;
  Status status;
  for (uint64_t first = begin; status.ok() && (first < end || !under_way.empty());) {
    if (under_way.size() < kPieces && first < end) {
      if (free == nullptr) free = std::make_unique<Piece>();
      Fill(first, std::min(first + kPieceRows, end), all, free.get());
      first += kPieceRows;
      status = Issue(free.get());
      under_way.push_back(std::move(free));
      continue;
    }
    status = Finish(under_way.front().get());
    if (!status.ok()) break;
    free = std::move(under_way.front());
    under_way.pop_front();
  }
  // An unanswered request may still write into its piece: it is given up with it. The job ends now.
  for (std::unique_ptr<Piece>& piece : under_way) (void)piece.release();
  return status;
}

}  // namespace shoal::learn::sparse
