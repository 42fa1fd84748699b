// Puts the core's decisions into effect in the right order: records go into the journal first,
// actions that depend on a durable record wait for its commit, and controllers are told of records
// once these cannot be lost. Used by coordinator.cc.
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
  // Carries out any other action; called when the record that it waits for is stored.
  std::function<void(const Action& action)> perform;
  // Controllers may be told of records up to this number.
  std::function<void(int64_t seq)> on_released;
  // Adds descriptors that are to be synced with the journal. They stay open as long as the returned
  // object lives.
  std::function<std::shared_ptr<void>(std::vector<int>* fds)> collect_descriptors;
  // The journal cannot be written now (the disk is full); everything waits until it can. Once per
  // such time. Optional.
  std::function<void(const Status& why)> on_waiting;
  // The journal could not be written for too long. Nothing is done after this.
  std::function<void(const Status& why)> on_failed;
};

// How long writing the journal is retried: on a full disk, and after other errors.
inline constexpr Duration kDiskFullTimeout = std::chrono::minutes(5);
inline constexpr Duration kJournalErrorTimeout = std::chrono::seconds(10);

class DurabilityGate {
 public:
  struct Opened;
  // Opens DIR/journal. A record waits at most `commit_delay` for others to be synced with it.
  static Result<Opened> Open(net::Loop* loop, const std::string& job_dir, Duration commit_delay,
                             DurabilityGateCallbacks callbacks);
  virtual ~DurabilityGate() = default;

  // Records, carries out or defers the actions that one event has led to.
  virtual void Execute(const std::vector<Action>& actions) = 0;
  // Syncs now. A coordinator that goes on from a journal calls it first.
  virtual void CommitNow() = 0;
  // No-shared-filesystem mode: controllers have mirrored records up to this one, and actions that
  // wait for a record wait for its mirror too. None: no controller mirrors the journal, and none is
  // waited for.
  virtual void SetMirroredSeq(std::optional<int64_t> seq) = 0;
  virtual int64_t journal_bytes() const = 0;
  // Carries out nothing from now on.
  virtual void Close() = 0;
  // Number of group commits so far.
  virtual int64_t syncs() const = 0;
};

struct DurabilityGate::Opened {
  std::unique_ptr<DurabilityGate> gate;
  std::vector<JournalRecord> records;  // of earlier coordinators, oldest first
};

}  // namespace shoal::rendezvous
