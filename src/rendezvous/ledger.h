// What the coordinator's core has decided, on its way into the world: facts go into the journal
// first, what must not happen before a fact is on disk waits for the commit that takes it there,
// and controllers are told of facts once they cannot be taken back. Used by coordinator.cc.
//
// Belongs to the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/loop.h"
#include "rendezvous/core_events.h"

namespace shoal::rendezvous {

struct LedgerCallbacks {
  // A fact is in the journal.
  std::function<void(const Fact& fact)> on_fact;
  // Any other action, when its time has come.
  std::function<void(const Action& action)> perform;
  // Facts up to this number may be told.
  std::function<void(int64_t seq)> release;
  // Adds descriptors that are to be synced with the journal; they stay open as long as what it
  // gives.
  std::function<std::shared_ptr<void>(std::vector<int>* fds)> also;
  // The journal cannot be written now (the disk is full); nothing is done until it can. Once for
  // each such time. Optional.
  std::function<void(const Status& why)> on_waiting;
  // The journal could not be written for long. Nothing is done after it.
  std::function<void(const Status& why)> on_failed;
};

// How long it is tried again to write the journal where the disk is full, and after other errors.
inline constexpr Duration kWaitForRoom = std::chrono::minutes(5);
inline constexpr Duration kWaitAfterError = std::chrono::seconds(10);

class Ledger {
 public:
  struct Opened;
  // Opens DIR/journal. A result waits at most `commit_delay` for others to be synced with it.
  static Result<Opened> Open(net::Loop* loop, const std::string& job_dir, Duration commit_delay,
                             LedgerCallbacks callbacks);
  virtual ~Ledger() = default;

  // Records, performs and defers what one event has led to.
  virtual void Take(const std::vector<Action>& actions) = 0;
  // Syncs what there is; who goes on from an earlier coordinator's journal begins with it.
  virtual void CommitNow() = 0;
  // Where a controller keeps the journal as well: facts up to this one it has, and what is
  // performed after a fact waits for both. Nothing: nobody keeps it, and nobody is waited for.
  virtual void Keep(std::optional<int64_t> seq) = 0;
  virtual int64_t journal_bytes() const = 0;
  // Nothing is performed any more.
  virtual void Close() = 0;
  // Groups of files synced so far.
  virtual int64_t syncs() const = 0;
};

struct Ledger::Opened {
  std::unique_ptr<Ledger> ledger;
  std::vector<Fact> facts;  // of earlier coordinators, oldest first
};

}  // namespace shoal::rendezvous
