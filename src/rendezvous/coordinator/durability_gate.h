// What the coordinator's core has decided, on its way into the world: records go into the journal
// first, what must not happen before a record is on disk waits for the commit that takes it there,
// and controllers are told of records once they cannot be taken back. Used by coordinator.cc.
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
#include "net/event_loop.h"
#include "rendezvous/lifecycle/core_events.h"

namespace shoal::rendezvous {

struct DurabilityGateCallbacks {
  // A record is in the journal.
  std::function<void(const JournalRecord& record)> on_record;
  // Any other action, when its time has come.
  std::function<void(const Action& action)> perform;
  // Facts up to this number may be told.
  std::function<void(int64_t seq)> on_released;
  // Adds descriptors that are to be synced with the journal; they stay open as long as what it
  // gives.
  std::function<std::shared_ptr<void>(std::vector<int>* fds)> collect_descriptors;
  // The journal cannot be written now (the disk is full); nothing is done until it can. Once for
  // each such time. Optional.
  std::function<void(const Status& why)> on_waiting;
  // The journal could not be written for long. Nothing is done after it.
  std::function<void(const Status& why)> on_failed;
};

// How long it is tried again to write the journal where the disk is full, and after other errors.
inline constexpr Duration kDiskFullTimeout = std::chrono::minutes(5);
inline constexpr Duration kJournalErrorTimeout = std::chrono::seconds(10);

class DurabilityGate {
 public:
  struct Opened;
  // Opens DIR/journal. A result waits at most `commit_delay` for others to be synced with it.
  static Result<Opened> Open(net::Loop* loop, const std::string& job_dir, Duration commit_delay,
                             DurabilityGateCallbacks callbacks);
  virtual ~DurabilityGate() = default;

  // Records, performs and defers what one event has led to.
  virtual void Execute(const std::vector<Action>& actions) = 0;
  // Syncs what there is; who goes on from an earlier coordinator's journal begins with it.
  virtual void CommitNow() = 0;
  // Where a controller keeps the journal as well: records up to this one it has, and what is
  // performed after a record waits for both. Nothing: nobody keeps it, and nobody is waited for.
  virtual void SetMirroredSeq(std::optional<int64_t> seq) = 0;
  virtual int64_t journal_bytes() const = 0;
  // Nothing is performed any more.
  virtual void Close() = 0;
  // Groups of files synced so far.
  virtual int64_t syncs() const = 0;
};

struct DurabilityGate::Opened {
  std::unique_ptr<DurabilityGate> gate;
  std::vector<JournalRecord> records;  // of earlier coordinators, oldest first
};

}  // namespace shoal::rendezvous
