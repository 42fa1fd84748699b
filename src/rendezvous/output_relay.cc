#include "rendezvous/output_relay.h"

#include <algorithm>

#include "base/id.h"
#include "base/log.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;

std::string NameOf(const LogKey& key) { return fs::path(LogFileName(key)).stem().string(); }

}  // namespace

void OutputRelay::Add(Peer* peer) {
  if (peer_ != nullptr) peer_->Close("another connection fetches the outputs");
  source_.reset();
  waiting_.clear();
  finishing_ = false;
  peer_ = peer;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    const auto key = ParseLogFileName(it->path().filename().string() + ".log");
    if (key && it->is_directory(error)) waiting_.push_back(*key);
  }
  std::sort(waiting_.begin(), waiting_.end());
  peer->OnDrain([this, peer] {
    if (!Serves(peer) || !source_) return;
    if (const Status status = source_->Pump(); !status.ok()) Done(status);
  });
  OfferNext();
}

void OutputRelay::Remove(Peer* peer) {
  if (!Serves(peer)) return;
  peer_ = nullptr;
  source_.reset();
  for (const LogKey& key : std::exchange(waiting_, {})) callbacks_.on_kept(key);
}

bool OutputRelay::Offer(const LogKey& key) {
  if (peer_ == nullptr) return false;
  waiting_.push_back(key);
  if (!source_) OfferNext();
  return true;
}

void OutputRelay::OfferNext() {
  if (waiting_.empty()) return Settle();
  const LogKey& key = waiting_.front();
  OutputLine line;
  line.send = [this](std::string_view type, json::object fields) {
    if (peer_ != nullptr) peer_->Send(type, std::move(fields));
  };
  line.send_binary = [this](std::string frame) {
    if (peer_ != nullptr) peer_->SendBinary(std::move(frame));
  };
  line.queued_bytes = [this] { return peer_ == nullptr ? size_t{0} : peer_->queued_bytes(); };
  source_.emplace(directory_ / NameOf(key), std::move(line));
  if (const Status opened = source_->Open(); !opened.ok()) return Done(opened);
  // The same for all connections and coordinators: what is whole does not change any more.
  const std::string upload = Sha256Hex(job_id_ + " " + NameOf(key)).substr(0, 32);
  peer_->Send(
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
  const Status status = source_->Said(type, message);
  if (!status.ok() || source_->stored()) Done(status);
  return Status::Ok();
}

// Of the first that waits.
void OutputRelay::Done(const Status& status) {
  source_.reset();
  const LogKey key = waiting_.front();
  waiting_.pop_front();
  if (status.ok()) {
    callbacks_.on_kept(key);
  } else {
    LogWarning("outputs of {} did not come to the controller: {}", NameOf(key), status.message());
    callbacks_.on_lost(key, status);
  }
  if (peer_ != nullptr) OfferNext();
}

void OutputRelay::Settle() {
  if (finishing_ && waiting_.empty() && peer_ != nullptr) peer_->Send("finished", {});
}

}  // namespace shoal::rendezvous
