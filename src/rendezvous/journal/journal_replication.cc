#include "rendezvous/journal/journal_replication.h"

#include <fcntl.h>

#include <algorithm>

#include "rendezvous/journal/journal.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;

// Messages that are kept; each launcher sends one, and its controller a few.
constexpr size_t kMaxEarlyMessages = 100'000;

fs::path IncomingPath(const fs::path& journal) { return journal.string() + ".coming"; }

}  // namespace

bool JournalReplication::MayBegin(bool first_incarnation) {
  std::error_code error;
  if (fs::file_size(journal_, error) > 0 && !error) return true;
  first_incarnation_ = first_incarnation;
  return first_incarnation;
}

Result<bool> JournalReplication::AddHello(Connection* connection, uint64_t member,
                                          const json::object& hello) {
  early_messages_.push_back({member, "", hello});
  const int64_t bytes = GetIntOr(hello, "journal", -1);
  if (bytes < 0 || GetStringOr(hello, "kind", "") != "controller") return false;
  if (bytes == 0) return sender_ == nullptr;
  TRY_ASSIGN(incoming_, OpenFile(IncomingPath(journal_), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  sender_ = connection;
  received_bytes_ = 0;
  connection->Send("want_journal", {});
  return false;
}

Result<bool> JournalReplication::HandleMessage(Connection* connection, uint64_t member,
                                               const std::string& type,
                                               const json::object& message) {
  if (type == "journal_sent" && connection == sender_) return FinishTransfer(message);
  if (type != "heartbeat" && early_messages_.size() < kMaxEarlyMessages)
    early_messages_.push_back({member, type, message});
  return false;
}

Status JournalReplication::ReceiveJournal(Connection* connection, std::string_view frame) {
  if (connection != sender_) return InvalidArgument("a journal that was not requested");
  TRY_ASSIGN(const JournalFrame part, DecodeJournalFrame(frame));
  if (part.offset != received_bytes_) return DataLoss("a part of the journal was left out");
  if (received_bytes_ + static_cast<int64_t>(part.bytes.size()) >
      static_cast<int64_t>(kMaxJournalBytes))
    return ResourceExhausted("a journal that is too long");
  TRY(WriteAll(incoming_.get(), part.bytes).With(IncomingPath(journal_).string()));
  received_bytes_ += static_cast<int64_t>(part.bytes.size());
  return Status::Ok();
}

Result<bool> JournalReplication::FinishTransfer(const json::object& message) {
  TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
  if (bytes != received_bytes_)
    return DataLoss("a journal that has not come whole was said to be whole");
  incoming_.Reset();
  sender_ = nullptr;
  std::error_code error;
  fs::rename(IncomingPath(journal_), journal_, error);
  if (error) return ErrnoStatus(error.value(), journal_.string());
  return true;
}

Status JournalReplication::SetMirroredBytes(Connection* connection, int64_t bytes, TimePoint now) {
  if (std::exchange(first_incarnation_, false) && bytes > 0)
    return Unavailable("the controller has the journal of an earlier coordinator");
  Mirror& mirror = mirrors_[connection];
  mirror.heard = now;
  const int64_t most = record_ends_.empty() ? 0 : record_ends_.back().first;
  mirror.bytes = std::clamp(bytes, mirror.bytes, std::max(mirror.bytes, most));
  return Status::Ok();
}

void JournalReplication::OnMirrorActivity(Connection* connection, TimePoint now) {
  const auto found = mirrors_.find(connection);
  if (found != mirrors_.end()) found->second.heard = now;
}

void JournalReplication::Remove(Connection* connection) {
  mirrors_.erase(connection);
  if (sender_ != connection) return;
  sender_ = nullptr;
  incoming_.Reset();
}

std::optional<int64_t> JournalReplication::mirrored_seq() const {
  if (mirrors_.empty()) return std::nullopt;
  int64_t most = 0;
  for (const auto& [connection, mirror] : mirrors_) most = std::max(most, mirror.bytes);
  const auto after = std::upper_bound(record_ends_.begin(), record_ends_.end(),
                                      std::pair(most, int64_t{INT64_MAX}));
  return after == record_ends_.begin() ? 0 : std::prev(after)->second;
}

std::vector<Connection*> JournalReplication::SilentMirrors(TimePoint now) const {
  std::vector<Connection*> stuck;
  for (const auto& [connection, mirror] : mirrors_) {
    const bool behind = !record_ends_.empty() && mirror.bytes < record_ends_.back().first;
    if (behind && now - mirror.heard > kMirrorTimeout) stuck.push_back(connection);
  }
  return stuck;
}

}  // namespace shoal::rendezvous
