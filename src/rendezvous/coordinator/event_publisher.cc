#include "rendezvous/coordinator/event_publisher.h"

#include <fcntl.h>

#include <algorithm>

#include "base/log.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

constexpr size_t kHighWater = 1 << 20;  // queued for one controller

std::shared_ptr<const std::string> TextOf(const JobEvent& event) {
  return std::make_shared<const std::string>(Message("event", EventToJson(event)));
}

}  // namespace

void EventPublisher::Add(int64_t seq, const JobEvent* event, int64_t journal_bytes) {
  if (event == nullptr && journal_bytes == 0) return;
  Entry entry;
  entry.seq = seq;
  entry.journal_bytes = journal_bytes;
  if (event != nullptr) {
    entry.ends = event->type == JobEvent::Type::kTask && event->end.has_value();
    entry.key = {event->role, event->index, event->attempt};
    entry.text = TextOf(*event);
  }
  entries_.push_back(std::move(entry));
}

void EventPublisher::Release(int64_t seq) {
  if (seq <= released_) return;
  released_ = seq;
  PumpAll();
}

void EventPublisher::PublishTransient(const JobEvent& event) {
  using Type = JobEvent::Type;
  const auto text = TextOf(event);
  const Slot slot{event.type, event.role, event.index};
  const bool kept = event.type == Type::kProgress || event.type == Type::kUsage;
  if (kept) latest_[slot] = text;
  const bool replaces = kept || event.type == Type::kProgram;
  for (auto& [connection, subscriber] : subscribers_) {
    if (replaces && connection->queued_bytes() >= kHighWater) {
      subscriber.late[slot] = text;
    } else {
      connection->SendShared(text, true);
    }
  }
}

void EventPublisher::LogGrew(const LogKey& key, int64_t bytes) {
  Log& log = segments_[key];
  log.bytes = bytes;
  // Only this log: a job may have thousands.
  for (auto& [connection, subscriber] : subscribers_) {
    if (!subscriber.logs) continue;
    int64_t& offset = subscriber.offsets[key];
    while (connection->queued_bytes() < kHighWater && PumpLog(connection, key, log, &offset)) {
    }
  }
}

void EventPublisher::LogEnded(const LogKey& key) {
  const auto found = segments_.find(key);
  if (found == segments_.end()) return;
  found->second.ended = true;
  PumpAll();
}

Status EventPublisher::Subscribe(Connection* connection, const json::object& hello) {
  Subscriber subscriber;
  TRY_ASSIGN(const int64_t after, GetInt(hello, "after_seq"));
  TRY_ASSIGN(subscriber.logs, GetBool(hello, "logs"));
  const json::value* offsets = hello.if_contains("offsets");
  if (offsets != nullptr && offsets->is_array()) {
    for (const json::value& value : offsets->get_array()) {
      if (!value.is_object()) return InvalidArgument("field 'offsets': expected objects");
      const json::object& one = value.get_object();
      LogKey key{GetStringOr(one, "role", ""), static_cast<int>(GetIntOr(one, "index", 0)),
                 static_cast<int>(GetIntOr(one, "attempt", 0))};
      subscriber.offsets[std::move(key)] = std::max<int64_t>(0, GetIntOr(one, "bytes", 0));
    }
  }
  const int64_t journal = GetIntOr(hello, "journal", -1);
  if (journal >= 0) {
    // The controller claims more bytes than the journal has: an incomplete record that was cut off
    // since.
    int64_t most = 0;
    for (const Entry& entry : entries_) most = std::max(most, entry.journal_bytes);
    subscriber.journal = std::min(journal, most);
  }
  const auto first = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.seq > after || (journal >= 0 && entry.journal_bytes > journal);
  });
  subscriber.next = static_cast<size_t>(first - entries_.begin());
  for (const auto& [slot, text] : latest_) connection->SendShared(text, true);
  subscribers_[connection] = std::move(subscriber);
  connection->OnDrain([this, connection] {
    const auto found = subscribers_.find(connection);
    if (found != subscribers_.end()) Pump(connection, &found->second);
  });
  Pump(connection, &subscribers_[connection]);
  return Status::Ok();
}

void EventPublisher::Remove(Connection* connection) { subscribers_.erase(connection); }

void EventPublisher::PumpAll() {
  for (auto& [connection, subscriber] : subscribers_) Pump(connection, &subscriber);
}

void EventPublisher::Pump(Connection* connection, Subscriber* subscriber) {
  if (connection->queued_bytes() < kHighWater) {
    for (const auto& [slot, text] : std::exchange(subscriber->late, {}))
      connection->SendShared(text, true);
  }
  PumpEvents(connection, subscriber);  // first, because log lines may use all the room
  bool more = subscriber->logs;
  while (more && connection->queued_bytes() < kHighWater) {
    more = false;
    for (const auto& [key, log] : segments_) {
      more = PumpLog(connection, key, log, &subscriber->offsets[key]) || more;
    }
  }
  PumpEvents(connection, subscriber);
}

void EventPublisher::PumpEvents(Connection* connection, Subscriber* subscriber) {
  while (subscriber->next < entries_.size() && connection->queued_bytes() < kHighWater) {
    const Entry& entry = entries_[subscriber->next];
    if (entry.seq > released_ || (entry.ends && !IsLogDelivered(*subscriber, entry.key))) return;
    if (subscriber->journal && !PumpJournal(connection, entry.journal_bytes, &*subscriber->journal))
      return;
    if (entry.text != nullptr) connection->SendShared(entry.text, true);
    ++subscriber->next;
  }
}

bool EventPublisher::PumpJournal(Connection* connection, int64_t upto, int64_t* sent) {
  while (*sent < upto) {
    const auto most = std::min<size_t>(kMaxJournalData, static_cast<size_t>(upto - *sent));
    auto file = OpenFile(journal_, O_RDONLY);
    const auto bytes = file.ok() ? ReadAt(file->get(), *sent, most) : file.status();
    if (!bytes.ok() || bytes->empty()) {
      LogError("the journal cannot be read for the controller: {}", bytes.status().message());
      return false;
    }
    connection->SendBinary(EncodeJournalFrame(*sent, *bytes));
    *sent += static_cast<int64_t>(bytes->size());
  }
  return true;
}

bool EventPublisher::IsLogDelivered(const Subscriber& subscriber, const LogKey& key) const {
  const auto log = segments_.find(key);
  if (!subscriber.logs || log == segments_.end()) return true;
  const auto offset = subscriber.offsets.find(key);
  return offset != subscriber.offsets.end() && offset->second >= log->second.bytes;
}

// Sends one run of complete lines; false if there is none to send now.
bool EventPublisher::PumpLog(Connection* connection, const LogKey& key, const Log& log,
                             int64_t* offset) {
  if (*offset >= log.bytes) return false;
  const auto pending = static_cast<size_t>(log.bytes - *offset);
  auto bytes = ReadLog(logs_, key, *offset, std::min(pending, kMaxLogData));
  if (!bytes.ok() || bytes->empty()) {
    LogWarning("cannot read {} for a controller: {}", LogFileName(key), bytes.status().message());
    *offset = log.bytes;  // the file may be gone; the attempt's end is published all the same
    return false;
  }
  const size_t line_end = bytes->rfind('\n');
  if (line_end != std::string::npos) {
    bytes->resize(line_end + 1);
  } else if (bytes->size() < kMaxLogData && !log.ended) {
    return false;
  }
  connection->SendBinary(EncodeLogFrame(key, *offset, *bytes));
  *offset += static_cast<int64_t>(bytes->size());
  return true;
}

}  // namespace shoal::rendezvous
