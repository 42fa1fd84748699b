#include "rendezvous/coordinator/log_collector.h"

#include <utility>

#include "rendezvous/coordinator/launcher_commands.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

LogCollector::LogCollector(net::Loop* loop, const std::filesystem::path& directory,
                           const CoordinatorCore* core, MemberTable* members,
                           EventPublisher* publisher, LogCollectorCallbacks calls)
    : loop_(loop),
      core_(core),
      members_(members),
      publisher_(publisher),
      calls_(std::move(calls)),
      logs_(directory, [this](const LogKey& key, const Status& why) {
        calls_.note("log lines of " + key.role + " " + std::to_string(key.index) +
                    " are lost: " + why.message());
      }) {
  logs_.OnFinishedLate([this](const LogKey& key) {
    publisher_->LogGrew(key, logs_.size(key));
    loop_->After(Duration::zero(), [this, alive = alive_, key] {
      if (*alive) Release(key);
    });
  });
}

LogCollector::~LogCollector() { *alive_ = false; }

Status LogCollector::Store(MemberId member, std::string_view bytes) {
  TRY_ASSIGN(const LogFrame frame, DecodeLogFrame(bytes));
  TRY_ASSIGN(const LogKey key, StartedLog(*core_, member, frame.key.attempt));
  publisher_->LogGrew(key, logs_.Store(key, frame.offset, frame.bytes));
  if (logs_.AckDue(key)) Ack(member, key);
  return Status::Ok();
}

Status LogCollector::HandleGrowth(MemberId member, const json::object& message) {
  TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
  TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
  TRY_ASSIGN(const LogKey key, StartedLog(*core_, member, attempt));
  const int64_t there = logs_.Written(key, bytes);
  if (there > 0) publisher_->LogGrew(key, there);
  return Status::Ok();
}

Status LogCollector::HandleMirrored(const json::object& message) {
  TRY_ASSIGN(const LogKey key, ParseAttempt(*core_, message));
  TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
  logs_.OnMirrored(key, bytes);
  if (logs_.AckDue(key)) Ack(core_->MemberOf(*core_->Find(key.role, key.index)), key);
  return Status::Ok();
}

void LogCollector::HoldEnd(std::optional<int> task, ProgramEnded ended) {
  const LogKey key = task ? LogKeyOf(*core_, *task, ended.attempt) : LogKey();
  held_ends_[key] = std::move(ended);
  if (!task || logs_.Finish(key)) Release(key);
}

void LogCollector::Release(const LogKey& key) {
  publisher_->LogEnded(key);
  if (const auto held = held_ends_.extract(key); !held.empty()) calls_.ended(held.mapped());
}

void LogCollector::AckAll() {
  for (const LogKey& key : logs_.Unacked()) {
    const auto task = core_->Find(key.role, key.index);
    publisher_->LogGrew(key, logs_.size(key));
    if (task) Ack(core_->MemberOf(*task), key);
  }
}

void LogCollector::Ack(MemberId member, const LogKey& key) {
  const int64_t bytes = logs_.Ack(key);
  if (Connection* const connection = members_->ConnectionOf(member)) {
    connection->Send("log_ack", {{"attempt", key.attempt}, {"bytes", bytes}});
  }
}

}  // namespace shoal::rendezvous
