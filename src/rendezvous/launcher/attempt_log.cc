#include "rendezvous/launcher/attempt_log.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/fault_injection.h"
#include "base/file.h"
#include "base/log.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

constexpr size_t kSendHighWater = 1 << 20;
constexpr auto kGrowthInterval = std::chrono::milliseconds(20);  // between two reports

}  // namespace

AttemptLog::AttemptLog(net::Loop* loop, std::filesystem::path logs_dir, int copy_fd,
                       ReportGrowth report_growth)
    : loop_(loop),
      logs_dir_(std::move(logs_dir)),
      copy_fd_(copy_fd),
      report_growth_(std::move(report_growth)) {
  struct stat info {};
  if (copy_fd_ >= 0 && ::fstat(copy_fd_, &info) == 0) copy_mode_ = info.st_mode;
}

AttemptLog::~AttemptLog() { loop_->Cancel(growth_timer_); }

void AttemptLog::Begin(LogKey key, const std::string& directory_id) {
  key_ = std::move(key);
  segment_.reset();
  reported_bytes_ = 0;
  const auto ours = DirectoryIdentity(logs_dir_);
  writes_here_ = shares_directory_ = ours.ok() && *ours == directory_id;
}

bool AttemptLog::Append(std::string_view text) {
  if (TryWriteHere(text)) {
    if (!S_ISREG(copy_mode_)) Copy(text);
    ScheduleGrowthReport();
    return true;
  }
  spool_.Append(key_.attempt, text);
  Copy(text);
  return spool_.bytes() < kSpoolLimit;
}

AttemptLog::Finished AttemptLog::Finish() {
  Finished finished;
  finished.written_here = writes_here_ && segment_;
  finished.bytes = finished.written_here ? segment_->size() : spool_.log_bytes(key_.attempt);
  writes_here_ = false;
  segment_.reset();
  return finished;
}

void AttemptLog::SendTo(CoordinatorConnection* connection) {
  while (connection->queued_bytes() < kSendHighWater) {
    const LogSpool::Chunk* chunk = spool_.Next();
    if (chunk == nullptr) return;
    connection->SendBinary(
        EncodeLogFrame({key_.role, key_.index, chunk->attempt}, chunk->offset, chunk->bytes));
  }
}

// Not for every line: readers take many lines at once, and a message costs more than a line.
void AttemptLog::ScheduleGrowthReport() {
  if (!writes_here_ || !segment_ || growth_timer_ != 0) return;
  if (segment_->size() == reported_bytes_) return;
  if (!report_growth_(key_.attempt, segment_->size())) return;
  reported_bytes_ = segment_->size();
  growth_timer_ = loop_->After(kGrowthInterval, [this] {
    growth_timer_ = 0;
    ScheduleGrowthReport();
  });
}

void AttemptLog::Rewind() {
  spool_.Rewind();
  reported_bytes_ = 0;
}

bool AttemptLog::TryWriteHere(std::string_view text) {
  if (!writes_here_) return false;
  const Status status = WriteHere(text);
  if (status.ok()) return true;
  LogWarning("cannot write the log here: {}; the coordinator gets it", status.message());
  writes_here_ = false;
  if (segment_) spool_.Begin(key_.attempt, segment_->size());
  return false;
}

Status AttemptLog::WriteHere(std::string_view text) {
  TRY(FaultPoint("launcher.log"));
  if (!segment_) {
    TRY_ASSIGN(auto writer, TimedLogWriter::Open(logs_dir_, key_));
    segment_.emplace(std::move(writer));
  }
  return segment_->Append(segment_->size(), text).status();
}

// Copies as far as the reader keeps up; the program never waits for it.
void AttemptLog::Copy(std::string_view bytes) const {
  // A pipe that polls writable takes at least so much; a file takes everything.
  const size_t atomic = S_ISREG(copy_mode_) ? bytes.size() : 4096;
  while (copy_fd_ >= 0 && !bytes.empty()) {
    pollfd out{copy_fd_, POLLOUT, 0};
    if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return;
    const size_t take = std::min(bytes.size(), atomic);
    if (::write(copy_fd_, bytes.data(), take) != static_cast<ssize_t>(take)) return;
    bytes.remove_prefix(take);
  }
}

}  // namespace shoal::rendezvous
