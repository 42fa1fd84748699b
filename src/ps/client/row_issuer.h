// Row operations of a client: splits each over the lanes that own its keys, and into chunks that
// fit the caches, which are sent and applied while the next ones are built; waits for their
// answers.
//
// Owned by ClientCore, which outlives it. Thread-safe; holds no state of its own. Allocates nothing
// once warm.
#pragma once

#include <span>
#include <string_view>

#include "ps/client/client.h"
#include "ps/wire/frame.h"

namespace shoal::ps {

class ClientCore;

// One push, pull or call, in the caller's memory.
struct RowOperation {
  FrameType type;
  const TableRef* table;
  std::span<const Key> keys;
  ConstRows deltas;
  Rows out;
  DoneCallback done;
  Rows sent;                  // where to put the deltas as they were rounded for the wire
  std::string_view argument;  // a call's, as it travels
};

class RowIssuer {
 public:
  explicit RowIssuer(ClientCore* core) : core_(core) {}

  // Sends the operation; blocks while a channel's window is full. As Client::Push and Client::Pull.
  Result<Ticket> Issue(RowOperation request);
  Status Wait(Ticket ticket, TimePoint deadline);
  // Waits until everything that was issued before is answered, also what has been redirected.
  Status Flush(TimePoint deadline);
  Status PullRange(const TableRef& table, uint64_t first, uint64_t count, Rows out,
                   TimePoint deadline);

 private:
  Status CheckRequest(const RowOperation& request) const;
  void IssueOverOne(const RowOperation& request, uint32_t ticket, TimePoint deadline, Status* bad);
  void IssueOverMany(const RowOperation& request, uint32_t ticket, TimePoint deadline, Status* bad);
  void PollFor(Ticket ticket, TimePoint deadline);
  void Abandon(Ticket ticket);

  ClientCore* const core_;
};

}  // namespace shoal::ps
