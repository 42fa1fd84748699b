#include "ps/client/worker_client.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/mutex.h"
#include "ps/client/client_core.h"

namespace shoal::ps {
namespace {

constexpr Duration kLastWord = std::chrono::milliseconds(200);  // to learn which workers are late

}  // namespace

std::string WorkerClient::progress() {
  const MutexLock lock(progress_mu_);
  return progress_;
}

Status WorkerClient::Clock(uint64_t n, TimePoint deadline) {
  TRY(core_->rows().Flush(deadline));
  uint64_t known = clock_;
  while (known < n && !clock_.compare_exchange_weak(known, n)) {
  }
  const Consistency& rule = core_->options().consistency;
  std::string body;
  ByteWriter writer(&body);
  writer.Put(static_cast<uint8_t>(rule.kind != Consistency::Kind::kAsp));
  writer.Put(rule.kind == Consistency::Kind::kSsp ? rule.staleness : uint32_t{0});
  const auto reply = SendRequest(&core_->leader(), FrameType::kClock, n, body, deadline);
  body[0] = kAsksWhoIsLate;
  return WithLateWorkers(reply.status(), FrameType::kClock, n, std::move(body))
      .With(fmt::format("clock {}", n));
}

Status WorkerClient::Barrier(const std::string& name, TimePoint deadline) {
  uint64_t left = 0;
  {
    const MutexLock lock(barriers_mu_);
    if (const auto found = left_barriers_.find(name); found != left_barriers_.end()) {
      left = found->second;
    }
  }
  if (left != 0) {
    const Status before = LeaveBarrier(name, left, deadline);
    if (before.ok() || before.code() != Code::kDeadlineExceeded) return before;
    const MutexLock lock(barriers_mu_);
    if (left_barriers_.contains(name)) return before.With("barrier '" + name + "'");
  }
  FrameHeader head;
  head.type = FrameType::kBarrier;
  const auto call = core_->leader().StartCall(head, name, false);
  Status status = core_->leader().FinishCall(call, deadline).status();
  if (status.code() == Code::kDeadlineExceeded || status.code() == Code::kCancelled) {
    // Without it the others would pass, and this worker's next try would wait for them in vain.
    const Status gone = LeaveBarrier(name, call->head.id, RealClock::Get()->Now() + kLastWord);
    if (gone.ok()) return gone;
    if (status.code() == Code::kDeadlineExceeded) status = gone;
  }
  return status.With("barrier '" + name + "'");
}

Status WorkerClient::LeaveBarrier(const std::string& name, uint64_t id, TimePoint deadline) {
  {
    const MutexLock lock(barriers_mu_);
    left_barriers_[name] = id;
  }
  std::string body;
  ByteWriter writer(&body);
  writer.Put(id);
  writer.PutString(name);
  TRY_ASSIGN(const std::string reply, SendRequest(&core_->leader(), FrameType::kBarrier,
                                                  kLeavesBarrier, std::move(body), deadline));
  uint8_t passed = 0;
  std::string_view late;
  ByteReader reader(reply);
  TRY(reader.Get(&passed));
  TRY(reader.GetString(&late, kMaxPayload));
  {
    const MutexLock lock(barriers_mu_);
    left_barriers_.erase(name);
  }
  if (passed != 0) return Status::Ok();
  return DeadlineExceeded(late.empty() ? "not all workers entered in time" : std::string(late));
}

// A wait that was too long for its caller names the workers that it was for, if server 0 can still
// say.
Status WorkerClient::WithLateWorkers(const Status& status, FrameType type, uint64_t argument,
                                     std::string body) {
  if (status.code() != Code::kDeadlineExceeded) return status;
  const TimePoint deadline = RealClock::Get()->Now() + kLastWord;
  const auto late = SendRequest(&core_->leader(), type, argument, std::move(body), deadline);
  return late.ok() && !late->empty() ? status.With(*late) : status;
}

Status WorkerClient::SetProgress(std::string bytes) {
  if (bytes.size() > kMaxProgressBytes) {
    return InvalidArgument(
        fmt::format("progress of {} bytes, expected at most {}", bytes.size(), kMaxProgressBytes));
  }
  core_->gate().Enter();
  {
    const MutexLock lock(progress_mu_);
    progress_ = bytes;
  }
  FrameHeader head;
  head.type = FrameType::kProgress;
  core_->leader().SendNotice(head, bytes);
  core_->gate().Leave();
  return Status::Ok();
}

Status WorkerClient::Leave(TimePoint deadline) {
  TRY(core_->rows().Flush(deadline));
  const std::string progress = this->progress();
  for (Channel* channel : core_->Connected()) channel->SetLeft();
  FrameHeader head;
  head.type = FrameType::kLeave;
  return SendRequestToEach(core_->Connected(), head, progress, deadline).With("leave");
}

}  // namespace shoal::ps
