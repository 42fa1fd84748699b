#include "ps/lane/replica_log.h"

#include <algorithm>

namespace shoal::ps {

void ReplicaConnection::Send(uint64_t position, std::string_view entry) {
  FrameHeader head;
  head.type = FrameType::kReplicate;
  head.id = position;
  connection_->Send({head, entry, nullptr});
}

void ReplicaConnection::OnFrame(const FrameHeader& head, std::string_view) {
  if (head.type == FrameType::kReply) events_.confirmed(this, head.id);
}

void ReplicaConnection::OnClosed(const Status&) {
  const auto lost = events_.lost;  // the call may destroy this object
  lost(this);
}

void ReplicaLog::Open(std::shared_ptr<ReplicaConnection> connection) {
  Close();
  on_ = true;
  connection_ = std::move(connection);
  end_ = confirmed_ = 0;
}

void ReplicaLog::Resume(std::shared_ptr<ReplicaConnection> connection, uint64_t confirmed) {
  Confirm(confirmed);
  connection_ = std::move(connection);
  for (size_t i = 0; i < entries_.size(); ++i) connection_->Send(confirmed_ + 1 + i, entries_[i]);
}

void ReplicaLog::Detach(const ReplicaConnection* connection) {
  if (connection_.get() == connection) connection_ = nullptr;
}

void ReplicaLog::Close() {
  on_ = paired_ = false;
  connection_ = nullptr;
  for (const std::string& entry : entries_) bytes_ -= entry.size();
  entries_.clear();
  confirmed_ = end_;
}

void ReplicaLog::Append(std::string entry) {
  if (!on_) return;
  ++end_;
  bytes_ += entry.size();
  if (connection_ != nullptr) connection_->Send(end_, entry);
  entries_.push_back(std::move(entry));
}

void ReplicaLog::Hold(const std::shared_ptr<ServerConnection>& peer, const FrameHeader& head,
                      std::string_view body) {
  bytes_ += body.size();
  held_.push_back({end_, peer, head, std::string(body)});
}

void ReplicaLog::Confirm(uint64_t position) {
  position = std::min(position, end_);
  for (; confirmed_ < position; ++confirmed_) {
    bytes_ -= entries_.front().size();
    entries_.pop_front();
  }
}

std::vector<HeldAnswer> ReplicaLog::TakeReady() {
  std::vector<HeldAnswer> ready;
  if (paired_ && connection_ == nullptr) return ready;
  while (!held_.empty() && held_.front().position <= confirmed_) {
    bytes_ -= held_.front().body.size();
    ready.push_back(std::move(held_.front()));
    held_.pop_front();
  }
  return ready;
}

}  // namespace shoal::ps
