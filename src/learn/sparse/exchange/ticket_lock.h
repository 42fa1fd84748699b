// Whose exchange of frequent rows it is: workers exchange them one after another, so that none
// pushes what another has not seen (docs/adr/0186, 0430). A queue of tickets, in one row on the
// servers. It is advice: where a worker dies in its turn, or a server comes back without the row,
// two may exchange at a time, and the table's rule `combine` makes that safe.
//
// Used by training.h, by one thread at a time. Errors are those of the client.
#pragma once

#include <array>
#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "ps/client/client.h"

namespace shoal::learn::sparse {

class TicketLock {
 public:
  // Neither is owned; both outlive it.
  TicketLock(ps::Client* client, const Clock* clock) : client_(client), clock_(clock) {}
  ~TicketLock();
  TicketLock(const TicketLock&) = delete;
  TicketLock& operator=(const TicketLock&) = delete;

  // Makes the row, or finds it. Before all else, once.
  Status Connect();
  // True: from now until Release() it is this worker's turn. Else it has or gets a ticket, and may
  // ask again at `next_attempt()`. One request; `expected` is about how long an exchange takes.
  Result<bool> TryAcquire(Duration expected);
  TimePoint next_attempt() const { return next_attempt_; }
  // It has a ticket: others wait until it has had its turn.
  bool has_ticket() const { return has_ticket_; }
  // The next one's turn, as soon as the server hears of it. Without a turn: nothing.
  Status Release();

 private:
  struct Row {
    float next = 0;     // ticket that will be drawn
    float serving = 0;  // ticket whose turn it is
  };
  Result<Row> Add(float next, float serving);

  ps::Client* const client_;
  const Clock* const clock_;
  ps::TableRef table_;
  bool has_ticket_ = false;  // a ticket
  bool acquired_ = false;
  float ticket_ = 0;
  std::optional<ps::Ticket> ending_;  // the request of the last Release()
  std::array<float, 2> delta_{};      // of the request under way
  float serving_ = -1;                // as last seen
  TimePoint advanced_{};              // when that was new
  TimePoint next_attempt_{};
};

}  // namespace shoal::learn::sparse
