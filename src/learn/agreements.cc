#include "learn/agreements.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace shoal::learn {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);  // whether a server came back
constexpr auto kWithin = std::chrono::seconds(5);      // then it looks again

}  // namespace

Agreements::Agreements(ps::Client* client) : client_(client), watch_([this] { Watch(); }) {}

Agreements::~Agreements() {
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  stopped_.notify_all();
  watch_.join();
}

Result<std::string> Agreements::Learn(const std::string& name) {
  const int64_t told_at = client_->server_restarts();
  TRY_ASSIGN(std::string bytes, client_->GetBlob(name));
  Keep(name, bytes, told_at);
  return bytes;
}

Status Agreements::Tell(const std::string& name, const std::string& bytes) {
  const int64_t told_at = client_->server_restarts();
  TRY(client_->PutBlob(name, bytes));
  Keep(name, bytes, told_at);
  return Status::Ok();
}

void Agreements::Keep(const std::string& name, std::string bytes, int64_t told_at) {
  const std::lock_guard lock(mu_);
  kept_[name] = {std::move(bytes), told_at};
}

void Agreements::Watch() {
  std::unique_lock lock(mu_);
  while (!stopped_.wait_for(lock, kLook, [this] { return stop_; })) {
    lock.unlock();
    TellAgain();
    lock.lock();
  }
}

void Agreements::TellAgain() {
  // A restart that is counted after this makes another round.
  const int64_t now = client_->server_restarts();
  std::vector<std::pair<std::string, std::string>> due;
  {
    const std::lock_guard lock(mu_);
    for (const auto& [name, kept] : kept_) {
      if (kept.told_at != now) due.emplace_back(name, kept.bytes);
    }
  }
  for (const auto& [name, bytes] : due) {
    const Status status = client_->PutBlob(name, bytes, kWithin);
    if (!status.ok()) {
      LogWarning("'{}' was not told again to the server that came back: {}", name,
                 status.message());
      return;
    }
    const std::lock_guard lock(mu_);
    kept_[name].told_at = now;
  }
}

bool Decides(int worker, const std::vector<int>& ended) {
  for (int other = 0; other < worker; ++other) {
    if (std::find(ended.begin(), ended.end(), other) == ended.end()) return false;
  }
  return true;
}

bool AllAsk(const std::string& prefix, const std::vector<std::string>& names, int workers,
            const std::vector<int>& ended) {
  for (int worker = 0; worker < workers; ++worker) {
    const bool asks =
        std::find(names.begin(), names.end(), prefix + std::to_string(worker)) != names.end();
    if (!asks && std::find(ended.begin(), ended.end(), worker) == ended.end()) return false;
  }
  return true;
}

}  // namespace shoal::learn
