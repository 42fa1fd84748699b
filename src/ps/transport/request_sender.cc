#include "ps/transport/request_sender.h"

#include <algorithm>

#include "ps/wire/row_frame.h"

namespace shoal::ps {
namespace {

constexpr size_t kUsualBuffer = 1u << 20;
// Rows up to this size are copied behind their header; more stay where they are until they are
// sent.
constexpr size_t kGathered = 16u << 10;
// Queued bytes beyond this are sent without waiting for a batch.
constexpr size_t kEnough = 256u << 10;

}  // namespace

bool RequestSender::Takes(size_t bytes) {
  const MutexLock lock(mu_);
  const bool takes = !blocked_ && stream_->HasRoom(std::min(bytes, kRingFrame));
  if (!takes) wants_room_ = true;
  return takes;
}

bool RequestSender::Send(const Outgoing& out) {
  const MutexLock lock(mu_);
  if (shut_) return false;
  asked_ += IsSequenced(out.head.type);
  if (out.rows == nullptr) {
    scratch_.clear();
    AppendControlFrame(out.head, out.body, &scratch_);
    queue_.Append(scratch_.data(), scratch_.size());
  } else if (!stream_->in_shared_memory()) {
    QueueRows(out.head, *out.rows);
    if (MayWait()) return false;
  } else if (PlaceRows(out.head, *out.rows)) {
    return false;
  } else {
    QueueRows(out.head, *out.rows);
  }
  if (blocked_) return false;
  Drain();
  return blocked_;
}

// The receiver of an answer first counts it and then looks whether something is corked, here it is
// the other way round: one of the two sees the other's.
bool RequestSender::MayWait() {
  if (blocked_ || queue_.size() >= kEnough) return false;
  corked_ = true;
  return sent_ != answered_;
}

bool RequestSender::Uncork() {
  const MutexLock lock(mu_);
  if (blocked_) return false;
  Drain();
  return blocked_;
}

bool RequestSender::PlaceRows(FrameHeader head, const RowChunk& rows) {
  const size_t whole = SizeRowFrame(rows, &head);
  if (!queue_.empty() || whole > kRingFrame) return false;
  char* const to = stream_->Place(whole);
  if (to == nullptr) return false;
  WriteRowFrame(head, rows, false, to);
  stream_->Commit(whole);
  // A ring that the server broke ends the connection where it is received.
  const Status ignored = stream_->Publish();
  return true;
}

// Many rows that lie one after the other go to a socket from where they are.
void RequestSender::QueueRows(FrameHeader head, const RowChunk& rows) {
  const size_t whole = SizeRowFrame(rows, &head);
  const size_t values = ValueBytes(head);
  const bool checked = !stream_->in_shared_memory();
  if (!checked || values <= kGathered || !IsContiguous(rows)) {
    WriteRowFrame(head, rows, checked, queue_.Reserve(whole));
    return queue_.Commit(whole);
  }
  WriteRowFrameHead(head, rows, queue_.Reserve(whole - values));
  queue_.Commit(whole - values);
  queue_.Refer(rows.deltas[rows.first], values);
}

void RequestSender::Drain() {
  sent_ = asked_;
  corked_ = false;
  blocked_ = false;
  while (!queue_.Send(stream_)) {
    if (stream_->AwaitRoom()) continue;
    blocked_ = true;
    break;
  }
  queue_.ShrinkTo(kUsualBuffer);
}

bool RequestSender::Retry() {
  if (blocked_) {
    const MutexLock lock(mu_);
    Drain();
  }
  if (!wants_room_) return false;
  const MutexLock lock(mu_);
  const bool room = queue_.empty() && (!stream_->in_shared_memory() || stream_->AwaitRoom());
  if (room) wants_room_ = false;
  return room;
}

void RequestSender::Close() {
  const MutexLock lock(mu_);
  queue_.Clear();
  shut_ = true;
}

}  // namespace shoal::ps
