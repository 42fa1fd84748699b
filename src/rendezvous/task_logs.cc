#include "rendezvous/task_logs.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace shoal::rendezvous {
namespace {

constexpr int64_t kAckEvery = 64 << 10;

}  // namespace

int64_t TaskLogs::Written(const LogKey& key, int64_t bytes) {
  std::error_code error;
  const std::filesystem::path path = directory_ / LogFileName(key);
  const uintmax_t there = std::filesystem::file_size(path, error);
  if (!error) return std::clamp<int64_t>(bytes, 0, static_cast<int64_t>(there));
  if (bytes > 0) Lost(key, ErrnoStatus(error.value(), path.string()));
  return 0;
}

int64_t TaskLogs::Store(const LogKey& key, int64_t offset, std::string_view bytes) {
  auto found = open_.find(key);
  if (found == open_.end()) {
    auto writer = LogWriter::Open(directory_, key);
    if (!writer.ok()) {
      Lost(key, writer.status());
      return 0;
    }
    found =
        open_.emplace(key, Open{.writer = std::move(writer).value(), .kept = kept_at_first_}).first;
  }
  Open* const log = &found->second;
  if (!log->held.empty() || !log->writer.Append(offset, bytes).ok()) Hold(key, log, offset, bytes);
  return log->writer.size();
}

void TaskLogs::Hold(const LogKey& key, Open* log, int64_t offset, std::string_view bytes) {
  if (log->held.empty()) {
    log->held_at = std::max({offset, log->writer.size(), log->given_up});
    log->held_since = clock_->Now();
  }
  const int64_t end = log->held_at + static_cast<int64_t>(log->held.size());
  const auto known = static_cast<uint64_t>(std::max<int64_t>(0, end - offset));
  if (known < bytes.size()) log->held += bytes.substr(known);
  Retry(key, log, false);
}

void TaskLogs::Retry(const LogKey& key, Open* log, bool last) {
  const auto stored = log->writer.Append(log->held_at, log->held);
  if (!stored.ok()) {
    const bool enough =
        last || log->held.size() > kHeldLines || clock_->Now() - log->held_since >= kHoldLinesFor;
    if (!enough) return;
    log->given_up = log->held_at + static_cast<int64_t>(log->held.size());
    Lost(key, stored.status());
  }
  log->held.clear();
}

int64_t TaskLogs::size(const LogKey& key) const {
  const auto found = open_.find(key);
  return found == open_.end() ? 0 : found->second.writer.size();
}

void TaskLogs::Lost(const LogKey& key, const Status& why) {
  if (!lost_.insert(key).second) return;
  LogError("cannot store {}: {}", LogFileName(key), why.message());
  on_lost_(key, why);
}

void TaskLogs::SetKept(bool kept) {
  const int64_t first = kept ? 0 : INT64_MAX;
  if (std::exchange(kept_at_first_, first) == first) return;
  for (auto& [key, log] : open_) log.kept = kept_at_first_;
}

void TaskLogs::Kept(const LogKey& key, int64_t bytes) {
  const auto found = open_.find(key);
  if (found != open_.end()) found->second.kept = std::max<int64_t>(bytes, 0);
}

bool TaskLogs::AckDue(const LogKey& key) const {
  const auto found = open_.find(key);
  return found != open_.end() && found->second.stored() - found->second.acked >= kAckEvery;
}

int64_t TaskLogs::Ack(const LogKey& key) {
  const auto found = open_.find(key);
  if (found == open_.end()) return 0;
  return found->second.acked = std::max(found->second.acked, found->second.stored());
}

std::vector<LogKey> TaskLogs::Unacked() {
  std::vector<LogKey> keys;
  for (auto& [key, log] : open_) {
    if (!log.held.empty()) Retry(key, &log, false);
    if (log.stored() > log.acked) keys.push_back(key);
  }
  return keys;
}

void TaskLogs::Finish(const LogKey& key) {
  std::error_code error;
  if (!open_.contains(key) && std::filesystem::exists(directory_ / LogFileName(key), error)) {
    auto writer = LogWriter::Open(directory_, key);
    if (!writer.ok()) return Lost(key, writer.status());
    const int64_t size = writer->size();
    open_.emplace(key, Open{.writer = std::move(writer).value(), .acked = size, .kept = size});
  }
  const auto log = open_.find(key);
  if (log == open_.end()) return;
  if (!log->second.held.empty()) Retry(key, &log->second, true);
  // Nothing more comes that would tell of the gap.
  if (log->second.given_up > log->second.writer.size())
    (void)log->second.writer.Append(log->second.given_up, "");
  finished_.insert(key);
}

std::shared_ptr<void> TaskLogs::TakeFinished(std::vector<int>* fds) {
  auto taken = std::make_shared<std::vector<Open>>();
  for (const LogKey& key : std::exchange(finished_, {})) {
    const auto found = open_.find(key);
    if (found == open_.end()) continue;
    fds->push_back(found->second.writer.fd());
    taken->push_back(std::move(found->second));
    open_.erase(found);
  }
  return taken;
}

}  // namespace shoal::rendezvous
