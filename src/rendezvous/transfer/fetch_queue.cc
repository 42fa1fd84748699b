#include "rendezvous/transfer/fetch_queue.h"

namespace shoal::rendezvous {
namespace {

constexpr size_t kWindow =
    32;  // concurrent requests, so that small files do not each cost a round trip

}  // namespace

void FetchQueue::Begin() {
  asked_ = next_;
  left_.reset();
  received_any_ = false;
  Ask();
}

void FetchQueue::Ask() {
  for (; asked_ < targets_.size() && asked_ < next_ + kWindow; ++asked_)
    send_(targets_[asked_].request, targets_[asked_].fields);
}

Status FetchQueue::HandleMessage(const std::string& type, const json::object& message) {
  if (done() || (type != "content" && type != "missing")) return Status::Ok();
  if (type == "missing")
    return NotFound(GetStringOr(message, "text", "the other side has not got a file"));
  if (left_ || next_ >= asked_) return DataLoss("the other side sent what was not requested");
  TRY_ASSIGN(const int64_t size, GetInt(message, "size"));
  const Target& target = targets_[next_];
  if (size < 0 || size > target.most || (target.exact && size != target.most))
    return ResourceExhausted("the other side offered " + std::to_string(size) +
                             " bytes, expected " + (target.exact ? "" : "at most ") +
                             std::to_string(target.most));
  left_ = size;
  TRY(sink_.on_begin(next_));
  return Advance();
}

Status FetchQueue::HandleBytes(std::string_view bytes) {
  if (done()) return Status::Ok();
  if (!left_ || static_cast<int64_t>(bytes.size()) > *left_)
    return DataLoss("the other side sent more than it had offered");
  received_any_ = true;
  TRY(sink_.on_bytes(next_, bytes));
  *left_ -= static_cast<int64_t>(bytes.size());
  return Advance();
}

Status FetchQueue::Advance() {
  if (*left_ > 0) return Status::Ok();
  TRY(sink_.on_whole(next_));
  left_.reset();
  ++next_;
  Ask();
  return Status::Ok();
}

}  // namespace shoal::rendezvous
