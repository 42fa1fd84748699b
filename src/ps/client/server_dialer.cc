#include "ps/client/server_dialer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/id.h"
#include "base/mutex.h"

namespace shoal::ps {
namespace {

constexpr Duration kShortestDial = std::chrono::milliseconds(50);

uint64_t NewSession() {
  const uint64_t seed = RandomSeed();
  return seed == 0 ? 1 : seed;
}

}  // namespace

bool IsTransient(const Status& status) {
  return status.retryable() || status.code() == Code::kDeadlineExceeded;
}

ServerDialer::ServerDialer(const ClientOptions* options, Members* members)
    : options_(options),
      members_(members),
      session_(NewSession()),
      tcp_(MakeTcpTransport(options->token, options->shared_memory, options->ucx)) {
  if (options->hub != nullptr) inproc_ = MakeInProcessTransport(options->hub, options->token);
}

std::optional<size_t> ServerDialer::PlaceOf(int server) {
  const MutexLock lock(mu_);
  const auto found = places_.find(server);
  return found == places_.end() ? std::nullopt : std::optional<size_t>(found->second);
}

void ServerDialer::SetPlace(int server, size_t place) {
  const MutexLock lock(mu_);
  places_[server] = place;
}

std::string ServerDialer::PresentAddress(const MemberView& view, int server) {
  const std::optional<size_t> place = PlaceOf(server);
  return !place.has_value() || *place >= view.servers.size() ? std::string() : view.servers[*place];
}

Result<OpenedConnection> ServerDialer::Dial(const Target& target, std::string* address,
                                            Duration timeout) {
  const MemberView view = members_->Current();
  Status status = Unavailable(fmt::format("server {} has no address yet", target.server));
  // With replicas another process may have the server's rows: tries first where they were last.
  const auto index = static_cast<size_t>(target.server);
  const size_t first = PlaceOf(target.server).value_or(index);
  const bool anywhere = view.replicas > 1;
  const size_t places = anywhere ? view.servers.size() : (index < view.servers.size() ? 1 : 0);
  for (size_t step = 0; step < places; ++step) {
    const size_t at = (first + step) % view.servers.size();
    if (view.servers[at].empty()) continue;
    *address = view.servers[at];
    const Duration longest = places > 1 ? kQuickDial : kDialTimeout;
    auto dialled = DialAt(target, *address, std::clamp<Duration>(timeout, kShortestDial, longest));
    if (dialled.ok()) SetPlace(target.server, at);
    if (dialled.ok() || !IsTransient(dialled.status())) return dialled;
    status = dialled.status();
  }
  return status;
}

Result<OpenedConnection> ServerDialer::DialAt(const Target& target, const std::string& address,
                                              Duration timeout) {
  Hello hello;
  hello.server = target.server;
  hello.client = options_->index;
  hello.session = session_;
  hello.lane = target.lane;
  hello.first_seq = target.first_seq;
  hello.clock = target.clock;
  const bool local = address.starts_with("inproc:");
  if (local && inproc_ == nullptr) {
    return FailedPrecondition(fmt::format("{}: this client was given no hub", address));
  }
  return (local ? inproc_ : tcp_)->Dial(address, hello, timeout);
}

}  // namespace shoal::ps
