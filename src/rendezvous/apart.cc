#include "rendezvous/apart.h"

#include <fcntl.h>

#include <algorithm>

#include "rendezvous/journal.h"
#include "rendezvous/protocol.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;

// Words that are remembered; each launcher says one, and its controller a few.
constexpr size_t kMostEarly = 100'000;

fs::path ComingPath(const fs::path& journal) { return journal.string() + ".coming"; }

}  // namespace

bool Apart::MayBegin(bool first_life) {
  std::error_code error;
  if (fs::file_size(journal_, error) > 0 && !error) return true;
  first_life_ = first_life;
  return first_life;
}

Result<bool> Apart::Hello(Peer* peer, uint64_t member, const json::object& hello) {
  early_.push_back({member, "", hello});
  const int64_t bytes = GetIntOr(hello, "journal", -1);
  if (bytes < 0 || GetStringOr(hello, "kind", "") != "controller") return false;
  if (bytes == 0) return sender_ == nullptr;
  TRY_ASSIGN(coming_, OpenFile(ComingPath(journal_), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  sender_ = peer;
  come_ = 0;
  peer->Send("want_journal", {});
  return false;
}

Result<bool> Apart::Word(Peer* peer, uint64_t member, const std::string& type,
                         const json::object& message) {
  if (type == "journal_sent" && peer == sender_) return Whole(message);
  if (type != "heartbeat" && early_.size() < kMostEarly) early_.push_back({member, type, message});
  return false;
}

Status Apart::Took(Peer* peer, std::string_view frame) {
  if (peer != sender_) return InvalidArgument("a journal that nobody asked for");
  TRY_ASSIGN(const JournalFrame part, DecodeJournalFrame(frame));
  if (part.offset != come_) return DataLoss("a part of the journal was left out");
  if (come_ + static_cast<int64_t>(part.bytes.size()) > static_cast<int64_t>(kMaxJournalBytes))
    return ResourceExhausted("a journal that is too long");
  TRY(WriteAll(coming_.get(), part.bytes).With(ComingPath(journal_).string()));
  come_ += static_cast<int64_t>(part.bytes.size());
  return Status::Ok();
}

Result<bool> Apart::Whole(const json::object& message) {
  TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
  if (bytes != come_) return DataLoss("a journal that has not come whole was said to be whole");
  coming_.Reset();
  sender_ = nullptr;
  std::error_code error;
  fs::rename(ComingPath(journal_), journal_, error);
  if (error) return ErrnoStatus(error.value(), journal_.string());
  return true;
}

Status Apart::Keeps(Peer* peer, int64_t bytes, TimePoint now) {
  if (std::exchange(first_life_, false) && bytes > 0)
    return Unavailable("the controller keeps what an earlier coordinator has decided");
  Keeping& keeping = keepers_[peer];
  keeping.heard = now;
  const int64_t most = lengths_.empty() ? 0 : lengths_.back().first;
  keeping.bytes = std::clamp(bytes, keeping.bytes, std::max(keeping.bytes, most));
  return Status::Ok();
}

void Apart::Alive(Peer* peer, TimePoint now) {
  const auto found = keepers_.find(peer);
  if (found != keepers_.end()) found->second.heard = now;
}

void Apart::Remove(Peer* peer) {
  keepers_.erase(peer);
  if (sender_ != peer) return;
  sender_ = nullptr;
  coming_.Reset();
}

std::optional<int64_t> Apart::kept() const {
  if (keepers_.empty()) return std::nullopt;
  int64_t most = 0;
  for (const auto& [peer, keeping] : keepers_) most = std::max(most, keeping.bytes);
  const auto after =
      std::upper_bound(lengths_.begin(), lengths_.end(), std::pair(most, int64_t{INT64_MAX}));
  return after == lengths_.begin() ? 0 : std::prev(after)->second;
}

std::vector<Peer*> Apart::Stuck(TimePoint now) const {
  std::vector<Peer*> stuck;
  for (const auto& [peer, keeping] : keepers_) {
    const bool behind = !lengths_.empty() && keeping.bytes < lengths_.back().first;
    if (behind && now - keeping.heard > kKeeperPatience) stuck.push_back(peer);
  }
  return stuck;
}

}  // namespace shoal::rendezvous
