// The coordinator's side of no-shared-filesystem mode, in which its controller does not see its
// directory: waits for the controller before the job begins, gets an earlier coordinator's journal
// from it, and tracks how much of the journal each controller has mirrored. Used by coordinator.cc;
// holds no rules of the job.
//
// docs/formats/rendezvous.md, "No-shared-filesystem mode"; docs/adr/0096.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "rendezvous/protocol/connection.h"

namespace shoal::rendezvous {

// A controller that lags behind the journal and is silent for this long is disconnected.
inline constexpr Duration kMirrorTimeout = std::chrono::seconds(5);

// Lifecycle: first MayBegin; if that is false, AddHello, HandleMessage and ReceiveJournal until one
// gives true; then TakeEarlyMessages, and from then on only the functions under "Later". Belongs to
// the loop's thread.
class JournalReplication {
 public:
  explicit JournalReplication(std::filesystem::path journal) : journal_(std::move(journal)) {}

  // ---- Before the job begins ----

  // True if no controller is needed to begin: the journal is here, or this is the job's first
  // coordinator and no journal exists.
  bool MayBegin(bool first_incarnation);
  // A connection has proved the token; it is served when the job has begun. A controller's `hello`
  // tells how much of the journal it has: if none, the job may begin (true); else it is asked to
  // send it.
  Result<bool> AddHello(Connection* connection, uint64_t member, const json::object& hello);
  // A message of such a connection. True if it completes the journal, which is in its place then.
  Result<bool> HandleMessage(Connection* connection, uint64_t member, const std::string& type,
                             const json::object& message);
  // A part of the journal. InvalidArgument if none was asked for, DataLoss for a gap.
  Status ReceiveJournal(Connection* connection, std::string_view frame);
  // What arrived before the job began, in order; `type` is empty for a hello.
  struct EarlyMessage {
    uint64_t member;
    std::string type;
    json::object message;
  };
  std::vector<EarlyMessage> TakeEarlyMessages() { return std::exchange(early_messages_, {}); }

  // ---- Later ----

  // The journal ends at `bytes` with record `seq`.
  void OnRecordAppended(int64_t seq, int64_t bytes) { record_ends_.emplace_back(bytes, seq); }
  // The controller has mirrored so many bytes of the journal. Unavailable if this coordinator was
  // wrongly started as the job's first one and the controller has an earlier journal: the
  // coordinator then ends, and its successor asks for that journal.
  Status SetMirroredBytes(Connection* connection, int64_t bytes, TimePoint now);
  // The controller has sent a message.
  void OnMirrorActivity(Connection* connection, TimePoint now);
  void Remove(Connection* connection);
  // The last record that a controller has mirrored. None: no controller mirrors the journal, and
  // nothing waits for one.
  std::optional<int64_t> mirrored_seq() const;
  // Controllers that are behind and have been silent for kMirrorTimeout.
  std::vector<Connection*> SilentMirrors(TimePoint now) const;

 private:
  struct Mirror {
    int64_t bytes = 0;
    TimePoint heard;
  };
  Result<bool> FinishTransfer(const json::object& message);

  const std::filesystem::path journal_;
  bool first_incarnation_ = false;  // and no controller has connected yet
  std::vector<EarlyMessage> early_messages_;
  Connection* sender_ = nullptr;  // the controller that sends the journal
  UniqueFd incoming_;
  int64_t received_bytes_ = 0;
  std::vector<std::pair<int64_t, int64_t>> record_ends_;  // bytes, seq; ascending
  std::map<Connection*, Mirror> mirrors_;
};

}  // namespace shoal::rendezvous
