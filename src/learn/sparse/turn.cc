#include "learn/sparse/turn.h"

#include <algorithm>
#include <array>

namespace shoal::learn::sparse {
namespace {

constexpr auto kPatience = std::chrono::seconds(180);  // for an answer
// A turn that takes longer than this, and than so many exchanges, is of a worker that is lost.
constexpr auto kLongest = std::chrono::seconds(1);
constexpr int kLongestTimes = 8;
constexpr int kLooks = 4;  // in the time of an exchange
constexpr auto kShortestLook = std::chrono::microseconds(200);
constexpr std::array<ps::Key, 1> kRow{0};

}  // namespace

// The request under way reads a member.
Turn::~Turn() {
  if (ending_) (void)client_->Wait(*ending_, kPatience);
}

Status Turn::Connect() {
  ps::TableSpec spec;
  spec.name = "turn";
  spec.rows = 1;
  spec.dim = 2;
  spec.optimizer.kind = ps::OptimizerKind::kAdd;
  TRY_ASSIGN(table_, client_->CreateTable(spec, kPatience));
  return Status::Ok();
}

Result<Turn::Row> Turn::Add(float next, float serving) {
  if (ending_) {
    TRY(client_->Wait(*ending_, kPatience));
    ending_.reset();
  }
  std::array<float, 2> row{};
  const auto out = ps::Rows(row.data(), row.size());
  delta_ = {next, serving};
  const auto delta = ps::ConstRows(delta_.data(), delta_.size());
  const bool reads = next == 0 && serving == 0;
  TRY_ASSIGN(const ps::Ticket request, reads ? client_->Pull(table_, kRow, out)
                                             : client_->PushPull(table_, kRow, delta, out));
  TRY(client_->Wait(request, kPatience));
  return Row{row[0], row[1]};
}

Result<bool> Turn::Try(Duration expected) {
  TRY_ASSIGN(Row row, Add(holds_ ? 0.0f : 1.0f, 0));
  const TimePoint now = clock_->Now();
  // The server has forgotten the ticket if it will be drawn again.
  if (holds_ && row.next <= ticket_) {
    TRY_ASSIGN(row, Add(1, 0));
    holds_ = false;
  }
  if (!holds_) {
    ticket_ = row.next - 1;
    holds_ = true;
    advanced_ = now;
    // Somebody was passed over, and ended all the same.
    if (row.serving > ticket_) {
      TRY_ASSIGN(row, Add(0, ticket_ - row.serving));
    }
  }
  if (row.serving != serving_) {
    serving_ = row.serving;
    advanced_ = now;
  } else if (row.serving < ticket_ &&
             now - advanced_ > std::max<Duration>(kLongest, kLongestTimes * expected)) {
    TRY_ASSIGN(row, Add(0, 1));
    serving_ = row.serving;
    advanced_ = now;
  }
  has_turn_ = row.serving >= ticket_;
  next_look_ = now + std::max<Duration>(expected / kLooks, kShortestLook);
  return has_turn_;
}

Status Turn::End() {
  if (!has_turn_) return Status::Ok();
  has_turn_ = holds_ = false;
  if (serving_ > ticket_) return Status::Ok();  // it was passed over
  delta_ = {0, 1};
  TRY_ASSIGN(ending_, client_->Push(table_, kRow, ps::ConstRows(delta_.data(), delta_.size())));
  return Status::Ok();
}

}  // namespace shoal::learn::sparse
