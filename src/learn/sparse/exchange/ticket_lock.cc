#include "learn/sparse/exchange/ticket_lock.h"

#include <algorithm>
#include <array>

namespace shoal::learn::sparse {
namespace {

constexpr auto kTimeout = std::chrono::seconds(180);  // for an answer
// A turn that takes longer than this, and than so many exchanges, is of a worker that is lost.
constexpr auto kLongest = std::chrono::seconds(1);
constexpr int kLongestTimes = 8;
constexpr int kLooks = 4;  // in the time of an exchange
constexpr auto kShortestLook = std::chrono::microseconds(200);
constexpr std::array<ps::Key, 1> kRow{0};

}  // namespace

// The request under way reads a member.
TicketLock::~TicketLock() {
  if (ending_) (void)client_->Wait(*ending_, kTimeout);
}

Status TicketLock::Connect() {
  ps::TableSpec spec;
  spec.name = "turn";
  spec.rows = 1;
  spec.dim = 2;
  spec.optimizer.kind = ps::OptimizerKind::kAdd;
  TRY_ASSIGN(table_, client_->CreateTable(spec, kTimeout));
  return Status::Ok();
}

Result<TicketLock::Row> TicketLock::Add(float next, float serving) {
  if (ending_) {
    TRY(client_->Wait(*ending_, kTimeout));
    ending_.reset();
  }
  std::array<float, 2> row{};
  const auto out = ps::Rows(row.data(), row.size());
  delta_ = {next, serving};
  const auto delta = ps::ConstRows(delta_.data(), delta_.size());
  const bool reads = next == 0 && serving == 0;
  TRY_ASSIGN(const ps::Ticket request, reads ? client_->Pull(table_, kRow, out)
                                             : client_->PushPull(table_, kRow, delta, out));
  TRY(client_->Wait(request, kTimeout));
  return Row{row[0], row[1]};
}

Result<bool> TicketLock::TryAcquire(Duration expected) {
  TRY_ASSIGN(Row row, Add(has_ticket_ ? 0.0f : 1.0f, 0));
  const TimePoint now = clock_->Now();
  // The server has forgotten the ticket if it will be drawn again.
  if (has_ticket_ && row.next <= ticket_) {
    TRY_ASSIGN(row, Add(1, 0));
    has_ticket_ = false;
  }
  if (!has_ticket_) {
    ticket_ = row.next - 1;
    has_ticket_ = true;
    advanced_ = now;
    // A worker that was passed over has released the lock all the same.
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
  acquired_ = row.serving >= ticket_;
  // Those before it take about as long.
  const float before = std::max(1.0f, ticket_ - row.serving);
  const Duration wait(static_cast<int64_t>(static_cast<float>(expected.count()) * before / kLooks));
  next_attempt_ = now + std::max<Duration>(wait, kShortestLook);
  return acquired_;
}

Status TicketLock::Release() {
  if (!acquired_) return Status::Ok();
  acquired_ = has_ticket_ = false;
  if (serving_ > ticket_) return Status::Ok();  // it was passed over
  delta_ = {0, 1};
  TRY_ASSIGN(ending_, client_->Push(table_, kRow, ps::ConstRows(delta_.data(), delta_.size())));
  return Status::Ok();
}

}  // namespace shoal::learn::sparse
