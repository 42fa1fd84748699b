// The part of a coordinator whose directory its controller does not see: waits for the controller
// before the job begins, gets the journal of an earlier coordinator from it, and knows how far the
// controller has mirrored_seq what was decided since. Used by coordinator.cc; no rules of the job
// are here.
//
// docs/formats/rendezvous.md, "JournalReplication"; docs/adr/0096.
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

// Who keeps the journal and says nothing for so long is not waited for any more.
inline constexpr Duration kMirrorTimeout = std::chrono::seconds(5);

// Belongs to the loop's thread.
class JournalReplication {
 public:
  explicit JournalReplication(std::filesystem::path journal) : journal_(std::move(journal)) {}

  // ---- Before the job begins ----

  // Whether nobody need be asked for the journal: it is here, or this is the job's first life, in
  // which there is none.
  bool MayBegin(bool first_incarnation);
  // Somebody has proved the token; he is heard when the job has begun. Of a controller `hello`
  // says how much of the journal it keeps: none, and the job may begin (true); else it is asked to
  // send it.
  Result<bool> AddHello(Connection* connection, uint64_t member, const json::object& hello);
  // And what he says: true if that was the end of the journal, which is in its place then.
  Result<bool> HandleMessage(Connection* connection, uint64_t member, const std::string& type,
                             const json::object& message);
  // Bytes of it. InvalidArgument, DataLoss.
  Status ReceiveJournal(Connection* connection, std::string_view frame);
  // All that was said, in order; `type` is empty for a hello.
  struct EarlyMessage {
    uint64_t member;
    std::string type;
    json::object message;
  };
  std::vector<EarlyMessage> TakeEarlyMessages() { return std::exchange(early_messages_, {}); }

  // ---- Later ----

  // The journal is so long with this record.
  void OnRecordAppended(int64_t seq, int64_t bytes) { record_ends_.emplace_back(bytes, seq); }
  // `connection` keeps so many bytes of the journal. Unavailable if this was wrongly said to be the
  // first life: the first who comes keeps what an earlier one has decided, and the next one asks
  // for it.
  Status SetMirroredBytes(Connection* connection, int64_t bytes, TimePoint now);
  // It has said something.
  void OnMirrorActivity(Connection* connection, TimePoint now);
  void Remove(Connection* connection);
  // The last record that a controller keeps; nothing: nobody keeps anything.
  std::optional<int64_t> mirrored_seq() const;
  // Who is behind and has said nothing for kMirrorTimeout: to be closed.
  std::vector<Connection*> SilentMirrors(TimePoint now) const;

 private:
  struct Mirror {
    int64_t bytes = 0;
    TimePoint heard;
  };
  Result<bool> FinishTransfer(const json::object& message);

  const std::filesystem::path journal_;
  bool first_incarnation_ = false;  // and nobody has come yet
  std::vector<EarlyMessage> early_messages_;
  Connection* sender_ = nullptr;  // who is sending the journal
  UniqueFd incoming_;
  int64_t received_bytes_ = 0;
  std::vector<std::pair<int64_t, int64_t>> record_ends_;  // bytes, seq; ascending
  std::map<Connection*, Mirror> mirrors_;
};

}  // namespace shoal::rendezvous
