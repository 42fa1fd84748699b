#include "net/http/server_core.h"

#include <arpa/inet.h>

#include <cstring>

#include "base/mutex.h"
#include "net/address.h"

namespace shoal::net {

bool LoopPort::Post(std::function<void()> fn) {
  const MutexLock lock(mu_);
  if (loop_ == nullptr) return false;
  loop_->Post(std::move(fn));
  return true;
}

void LoopPort::End() {
  const MutexLock lock(mu_);
  loop_ = nullptr;
  thread_ = std::thread::id();
}

bool PeerCounts::Add(const std::string& key, size_t most) {
  const MutexLock lock(mu_);
  size_t& count = counts_[key];
  if (count >= most) {
    if (count == 0) counts_.erase(key);
    return false;
  }
  ++count;
  return true;
}

void PeerCounts::Remove(const std::string& key) {
  const MutexLock lock(mu_);
  const auto found = counts_.find(key);
  if (found != counts_.end() && --found->second == 0) counts_.erase(found);
}

std::string PeerKey(const std::string& numeric_address) {
  if (IsLoopback(numeric_address)) return "";
  in6_addr v6{};
  if (::inet_pton(AF_INET6, numeric_address.c_str(), &v6) != 1) return numeric_address;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    const std::string v4 = numeric_address.substr(numeric_address.rfind(':') + 1);
    return IsLoopback(v4) ? "" : v4;
  }
  return std::string(reinterpret_cast<const char*>(&v6), 8);
}

bool BodyCharge::SetTo(size_t bytes) {
  core_->body_bytes += bytes - bytes_;  // unsigned: also for less
  bytes_ = bytes;
  return core_->body_bytes <= core_->options.limits.body_memory;
}

}  // namespace shoal::net
