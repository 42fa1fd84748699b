// Requests under way: how many chunks are unanswered, the first error, and the threads that wait.
//
// A request is split into chunks, one per frame; channels report each chunk. Slots are reused, so
// that nothing is allocated once warm. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/mutex.h"
#include "ps/client/client.h"

namespace shoal::ps {

class TicketTable {
 public:
  // Opens a request with one part: the issuer's own hold, so that it cannot end while it is issued.
  Ticket Open(DoneCallback done);
  void AddChunk(uint32_t slot);
  // One part is answered; an error becomes the request's if it is the first.
  void ChunkDone(uint32_t slot, const Status& status);

  // The request's status, and forgets it; DeadlineExceeded (with an empty message, for the caller
  // to fill) leaves it. InvalidArgument for a ticket that is none, or was waited for before.
  Status Wait(Ticket ticket, TimePoint deadline, bool* timed_out);
  bool Done(Ticket ticket) const;

 private:
  struct Slot {
    uint32_t generation = 1;
    uint32_t parts = 0;
    bool used = false;
    Status status;
    DoneCallback done;
  };
  const Slot* Find(Ticket ticket) const REQUIRES(mu_);
  void Free(uint32_t slot) REQUIRES(mu_);

  mutable Mutex mu_;
  CondVar finished_;
  std::deque<Slot> slots_ GUARDED_BY(mu_);
  std::vector<uint32_t> free_ GUARDED_BY(mu_);
  int waiting_ GUARDED_BY(mu_) = 0;
};

}  // namespace shoal::ps
