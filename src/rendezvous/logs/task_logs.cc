#include "rendezvous/logs/task_logs.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rendezvous/logs/log_archive.h"

namespace shoal::rendezvous {
namespace {

constexpr int64_t kAckEvery = 64 << 10;

}  // namespace

int64_t TaskLogs::Written(const LogKey& key, int64_t bytes) {
  const auto there = LogSize(directory_, key);  // compressed already if its attempt has ended
  if (there.ok()) return std::clamp<int64_t>(bytes, 0, *there);
  if (bytes > 0) Lost(key, there.status());
  return 0;
}

int64_t TaskLogs::Store(const LogKey& key, int64_t offset, std::string_view bytes) {
  auto found = open_.find(key);
  if (found == open_.end()) {
    // A launcher that repeats itself about an attempt that has ended.
    if (const auto archived = ArchiveSize(directory_ / ArchiveFileName(key)); archived.ok())
      return *archived;
    auto writer = TimedLogWriter::Open(directory_, key, clock_);
    if (!writer.ok()) {
      Lost(key, writer.status());
      return 0;
    }
    found =
        open_.emplace(key, Open{.writer = std::move(writer).value(), .mirrored = initial_mirrored_})
            .first;
  }
  Open* const log = &found->second;
  if (!log->pending.empty() || !log->writer.Append(offset, bytes).ok())
    Buffer(key, log, offset, bytes);
  return log->writer.size();
}

void TaskLogs::Buffer(const LogKey& key, Open* log, int64_t offset, std::string_view bytes) {
  if (log->pending.empty()) {
    log->pending_offset = std::max({offset, log->writer.size(), log->given_up});
    log->pending_since = clock_->Now();
  }
  const int64_t end = log->pending_offset + static_cast<int64_t>(log->pending.size());
  const auto known = static_cast<uint64_t>(std::max<int64_t>(0, end - offset));
  if (known < bytes.size()) log->pending += bytes.substr(known);
  Retry(key, log);
}

void TaskLogs::Retry(const LogKey& key, Open* log) {
  const auto stored = log->writer.Append(log->pending_offset, log->pending);
  if (!stored.ok()) {
    const bool enough = log->pending.size() > kMaxUnstoredBytes ||
                        clock_->Now() - log->pending_since >= kUnstoredLinesTimeout;
    if (!enough) return;
    log->given_up = log->pending_offset + static_cast<int64_t>(log->pending.size());
    Lost(key, stored.status());
  }
  log->pending.clear();
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

void TaskLogs::SetMirrored(bool mirrored) {
  const int64_t first = mirrored ? 0 : INT64_MAX;
  if (std::exchange(initial_mirrored_, first) == first) return;
  for (auto& [key, log] : open_) log.mirrored = initial_mirrored_;
}

void TaskLogs::OnMirrored(const LogKey& key, int64_t bytes) {
  const auto found = open_.find(key);
  if (found != open_.end()) found->second.mirrored = std::max<int64_t>(bytes, 0);
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
  RetryEnded();
  std::vector<LogKey> keys;
  for (auto& [key, log] : open_) {
    if (!log.pending.empty()) Retry(key, &log);
    if (log.stored() > log.acked) keys.push_back(key);
  }
  return keys;
}

bool TaskLogs::Finish(const LogKey& key) {
  std::error_code error;
  if (!open_.contains(key) && std::filesystem::exists(directory_ / LogFileName(key), error)) {
    auto writer = TimedLogWriter::Open(directory_, key, clock_);
    if (!writer.ok()) {
      Lost(key, writer.status());
      return true;
    }
    const int64_t size = writer->size();
    open_.emplace(key, Open{.writer = std::move(writer).value(), .acked = size, .mirrored = size});
  }
  const auto log = open_.find(key);
  if (log == open_.end()) return true;
  const bool settled = Settle(key, &log->second);
  (settled ? finished_ : unfinished_).insert(key);
  return settled;
}

bool TaskLogs::Settle(const LogKey& key, Open* log) {
  if (!log->pending.empty()) Retry(key, log);
  if (!log->pending.empty()) return false;
  // No later bytes will show the gap.
  if (log->given_up <= log->writer.size() || log->writer.Append(log->given_up, "").ok())
    return true;
  return clock_->Now() - log->pending_since >= 2 * kUnstoredLinesTimeout;
}

bool TaskLogs::RetryEnded() {
  for (auto key = unfinished_.begin(); key != unfinished_.end();) {
    const auto log = open_.find(*key);
    if (log != open_.end() && !Settle(*key, &log->second)) {
      ++key;
      continue;
    }
    const LogKey settled = *key;
    key = unfinished_.erase(key);
    if (log == open_.end()) continue;
    finished_.insert(settled);
    on_finished_(settled);
  }
  return unfinished_.empty();
}

// The journal has just been written, so the disk may have room again.
std::shared_ptr<void> TaskLogs::TakeFinished(std::vector<int>* fds) {
  RetryEnded();
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
