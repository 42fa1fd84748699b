#include "rendezvous/transfer/output_relay.h"

#include <algorithm>

#include "base/id.h"
#include "base/log.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;

std::string NameOf(const LogKey& key) { return fs::path(LogFileName(key)).stem().string(); }

}  // namespace

void OutputRelay::Add(Connection* connection) {
  if (connection_ != nullptr) connection_->Close("another connection fetches the outputs");
  source_.reset();
  waiting_.clear();
  finishing_ = false;
  connection_ = connection;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    const auto key = ParseLogFileName(it->path().filename().string() + ".log");
    if (key && it->is_directory(error)) waiting_.push_back(*key);
  }
  std::sort(waiting_.begin(), waiting_.end());
  connection->OnDrain([this, connection] {
    if (!Serves(connection) || !source_) return;
    if (const Status status = source_->Pump(); !status.ok()) Done(status);
  });
  OfferNext();
}

void OutputRelay::Remove(Connection* connection) {
  if (!Serves(connection)) return;
  connection_ = nullptr;
  source_.reset();
  for (const LogKey& key : std::exchange(waiting_, {})) callbacks_.on_forwarded(key);
}

bool OutputRelay::Offer(const LogKey& key) {
  if (connection_ == nullptr) return false;
  waiting_.push_back(key);
  if (!source_) OfferNext();
  return true;
}

void OutputRelay::OfferNext() {
  if (waiting_.empty()) return Settle();
  const LogKey& key = waiting_.front();
  OutputConnection line;
  line.send = [this](std::string_view type, json::object fields) {
    if (connection_ != nullptr) connection_->Send(type, std::move(fields));
  };
  line.send_binary = [this](std::string frame) {
    if (connection_ != nullptr) connection_->SendBinary(std::move(frame));
  };
  line.queued_bytes = [this] {
    return connection_ == nullptr ? size_t{0} : connection_->queued_bytes();
  };
  source_.emplace(directory_ / NameOf(key), std::move(line));
  if (const Status opened = source_->Open(); !opened.ok()) return Done(opened);
  // Equal for all connections and coordinators: complete outputs never change.
  const std::string upload = Sha256Hex(job_id_ + " " + NameOf(key)).substr(0, 32);
  connection_->Send(
      "offer",
      {{"role", key.role}, {"index", key.index}, {"attempt", key.attempt}, {"upload", upload}});
}

Status OutputRelay::Received(const std::string& type, const json::object& message) {
  if (type == "heartbeat") return Status::Ok();
  if (type == "finish") {
    finishing_ = true;
    if (!source_) Settle();
    return Status::Ok();
  }
  if (!source_) return InvalidArgument("this type of message is unknown");
  const Status status = source_->HandleMessage(type, message);
  if (!status.ok() || source_->stored()) Done(status);
  return Status::Ok();
}

// Ends the first waiting attempt.
void OutputRelay::Done(const Status& status) {
  source_.reset();
  const LogKey key = waiting_.front();
  waiting_.pop_front();
  if (status.ok()) {
    callbacks_.on_forwarded(key);
  } else {
    LogWarning("outputs of {} did not come to the controller: {}", NameOf(key), status.message());
    callbacks_.on_lost(key, status);
  }
  if (connection_ != nullptr) OfferNext();
}

void OutputRelay::Settle() {
  if (finishing_ && waiting_.empty() && connection_ != nullptr) connection_->Send("finished", {});
}

}  // namespace shoal::rendezvous
