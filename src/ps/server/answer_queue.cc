#include "ps/server/answer_queue.h"

#include <optional>

namespace shoal::ps {
namespace {

constexpr size_t kUsualBuffer = 1u << 20;

}  // namespace

void AnswerQueue::Append(const FrameHeader& head, std::string_view body) {
  scratch_.clear();
  AppendControlFrame(head, body, &scratch_);
  queued_.Append(scratch_.data(), scratch_.size());
}

void AnswerQueue::Append(FrameType type, uint64_t id, std::string_view body) {
  FrameHeader head;
  head.type = type;
  head.id = id;
  Append(head, body);
}

char* AnswerQueue::Begin(size_t size, ByteStream* stream) {
  char* const place = empty() ? stream->Place(size) : nullptr;
  in_place_ = place != nullptr;
  return in_place_ ? place : queued_.Reserve(size);
}

bool AnswerQueue::End(size_t size, ByteStream* stream) {
  if (in_place_) {
    stream->Commit(size);
  } else {
    queued_.Commit(size);
  }
  return in_place_;
}

Status AnswerQueue::Send(ByteStream* stream, size_t* taken) {
  *taken = 0;
  blocked_ = false;
  for (;;) {
    if (sending_.empty()) {
      sending_.ShrinkTo(kUsualBuffer);
      std::optional<Lane::Guard> guard;
      if (lane_ != nullptr) guard.emplace(*lane_);
      sending_.Swap(queued_);
    }
    if (sending_.empty()) return Status::Ok();
    const iovec all{sending_.data(), sending_.size()};
    size_t step = 0;
    TRY(stream->Send({&all, 1}, &step));
    *taken += step;
    sending_.Consume(step);
    blocked_ = step == 0;
    if (blocked_) return Status::Ok();
  }
}

void AnswerQueue::Measure() {
  std::optional<Lane::Guard> guard;
  if (lane_ != nullptr) guard.emplace(*lane_);
  const size_t unsent = queued_.size() + sending_.size();
  unsent_.store(unsent, std::memory_order_relaxed);
  finished_ = shut_ && unsent == 0;
}

}  // namespace shoal::ps
