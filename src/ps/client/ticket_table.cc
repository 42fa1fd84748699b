#include "ps/client/ticket_table.h"

namespace shoal::ps {

Ticket TicketTable::Open(DoneCallback done) {
  const MutexLock lock(mu_);
  if (free_.empty()) {
    slots_.emplace_back();
    free_.push_back(static_cast<uint32_t>(slots_.size() - 1));
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.used = true;
  slot.parts = 1;
  slot.status = Status::Ok();
  slot.done = std::move(done);
  return {index, slot.generation};
}

void TicketTable::AddChunk(uint32_t slot) {
  const MutexLock lock(mu_);
  ++slots_[slot].parts;
}

void TicketTable::ChunkDone(uint32_t index, const Status& status) {
  MutexLock lock(mu_);
  Slot& slot = slots_[index];
  if (slot.status.ok() && !status.ok()) slot.status = status;
  if (--slot.parts > 0) return;
  if (slot.done == nullptr) {
    if (waiting_ > 0) finished_.notify_all();
    return;
  }
  const DoneCallback done = std::move(slot.done);
  const Status result = slot.status;
  Free(index);
  lock.unlock();
  done(result);
}

const TicketTable::Slot* TicketTable::Find(Ticket ticket) const {
  if (ticket.slot >= slots_.size()) return nullptr;
  const Slot& slot = slots_[ticket.slot];
  return slot.used && slot.generation == ticket.generation ? &slot : nullptr;
}

void TicketTable::Free(uint32_t index) {
  Slot& slot = slots_[index];
  slot.used = false;
  slot.done = nullptr;
  if (++slot.generation == 0) slot.generation = 1;
  free_.push_back(index);
}

Status TicketTable::Wait(Ticket ticket, TimePoint deadline, bool* timed_out) {
  *timed_out = false;
  MutexLock lock(mu_);
  if (Find(ticket) == nullptr) {
    return InvalidArgument("this ticket is not under way: it was waited for, or has a callback");
  }
  ++waiting_;
  const bool in_time = finished_.wait_until(lock, deadline, [&]() REQUIRES(mu_) {
    const Slot* slot = Find(ticket);
    return slot == nullptr || slot->parts == 0;
  });
  --waiting_;
  const Slot* slot = Find(ticket);
  if (slot == nullptr) return InvalidArgument("this ticket was waited for by another thread");
  if (!in_time) {
    *timed_out = true;
    return DeadlineExceeded("");
  }
  const Status status = slot->status;
  Free(ticket.slot);
  return status;
}

bool TicketTable::Done(Ticket ticket) const {
  const MutexLock lock(mu_);
  const Slot* slot = Find(ticket);
  return slot == nullptr || slot->parts == 0;
}

}  // namespace shoal::ps
