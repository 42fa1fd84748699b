#include "learn/coordination/shared_blobs.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"

namespace shoal::learn {
namespace {

constexpr auto kPollInterval =
    std::chrono::milliseconds(50);                         // between checks for restarted servers
constexpr auto kRequestTimeout = std::chrono::seconds(5);  // for one request

}  // namespace

SharedBlobs::SharedBlobs(ps::Client* client)
    : client_(client), watch_([this] { WatchRestarts(); }) {}

SharedBlobs::~SharedBlobs() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
  }
  stopped_.notify_all();
  watch_.join();
}

Result<std::string> SharedBlobs::Read(const std::string& name) {
  const int64_t published_at = client_->server_restarts();
  TRY_ASSIGN(std::string bytes, client_->GetBlob(name));
  Remember(name, bytes, published_at);
  return bytes;
}

Status SharedBlobs::Publish(const std::string& name, const std::string& bytes) {
  const int64_t published_at = client_->server_restarts();
  TRY(client_->PutBlob(name, bytes));
  Remember(name, bytes, published_at);
  return Status::Ok();
}

void SharedBlobs::Remember(const std::string& name, std::string bytes, int64_t published_at) {
  const MutexLock lock(mu_);
  blobs_[name] = {std::move(bytes), published_at};
}

void SharedBlobs::WatchRestarts() {
  MutexLock lock(mu_);
  while (!stopped_.wait_for(lock, kPollInterval, [this]() REQUIRES(mu_) { return stop_; })) {
    lock.unlock();
    Republish();
    lock.lock();
  }
}

void SharedBlobs::Republish() {
  // A restart counted after this line leads to another round.
  const int64_t now = client_->server_restarts();
  std::vector<std::pair<std::string, std::string>> due;
  {
    const MutexLock lock(mu_);
    for (const auto& [name, kept] : blobs_) {
      if (kept.published_at != now) due.emplace_back(name, kept.bytes);
    }
  }
  for (const auto& [name, bytes] : due) {
    const Status status = client_->PutBlob(name, bytes, kRequestTimeout);
    if (!status.ok()) {
      LogWarning("'{}' was not told again to the server that came back: {}", name,
                 status.message());
      return;
    }
    const MutexLock lock(mu_);
    blobs_[name].published_at = now;
  }
}

bool DecidesForAll(int worker, const std::vector<int>& ended) {
  for (int other = 0; other < worker; ++other) {
    if (std::find(ended.begin(), ended.end(), other) == ended.end()) return false;
  }
  return true;
}

bool AllHaveAsked(const std::string& prefix, const std::vector<std::string>& names, int workers,
                  const std::vector<int>& ended) {
  for (int worker = 0; worker < workers; ++worker) {
    const bool asks =
        std::find(names.begin(), names.end(), prefix + std::to_string(worker)) != names.end();
    if (!asks && std::find(ended.begin(), ended.end(), worker) == ended.end()) return false;
  }
  return true;
}

}  // namespace shoal::learn
