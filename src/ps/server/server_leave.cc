// A server that leaves while the job goes on: it gives its rows to the others, waits until its
// clients have disconnected, and stops (docs/design/partition.md, "Joining and leaving servers").
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "ps/client/admin.h"
#include "ps/server/server_impl.h"
#include "ps/server/shard_connection.h"

namespace shoal::ps {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(5);
constexpr Duration kRetryEvery = std::chrono::milliseconds(20);
// A leader that refuses, or is silent, for so long is not coming back: the job ends.
constexpr Duration kLeaderGone = std::chrono::seconds(1);
constexpr Duration kLeaderSilent = std::chrono::seconds(10);
constexpr Duration kAdminWithin = std::chrono::seconds(2);
// For clients to learn that they need it no more; one that does not is away itself.
constexpr Duration kLinger = std::chrono::seconds(3);
constexpr Duration kToldWithin = std::chrono::seconds(1);

bool ReachesLeader(const ServerOptions& options) {
  ShardDialer dialer(options);
  return dialer.Dial(MakeMoveHello(options, kLeader, 0), kToldWithin / 4).ok();
}

// Asks until the leader answers. False: it is gone. A busy machine may take its time.
bool AwaitLeader(ServerCore* core) {
  const TimePoint begin = RealClock::Get()->Now();
  TimePoint refused = begin;  // since when it has been refused at once
  for (;;) {
    const TimePoint asked = RealClock::Get()->Now();
    if (ReachesLeader(core->options())) return true;
    const TimePoint now = RealClock::Get()->Now();
    if (now - asked >= kToldWithin / 4) refused = now;
    if (now - refused > kLeaderGone || now - begin > kLeaderSilent) return false;
    if (core->WaitForStop(kRetryEvery)) return false;
  }
}

// An owner tells the next one and the clients that still ask it; a client that asks the leader from
// now on must not be sent to a server that has gone.
void TellOthers(ServerCore* core, TimePoint until) {
  ShardDialer dialer(core->options());
  std::set<int> left = OtherServers(core->options());
  for (;;) {
    SendShardMap(&dialer, core->shards().Map(), kToldWithin, &left);
    if (left.empty() || core->WaitForStop(kRetryEvery) || RealClock::Get()->Now() >= until) break;
  }
  if (left.contains(kLeader)) {
    LogWarning("server {}: the leader has not learned the new owners of its rows",
               core->options().index);
  }
}

// Shards whose move to this server broke off stay with their owners, but here they wait for the
// next attempt, which is refused now. An owner that takes the order to keep one is not giving it
// away, and will not.
void ForgetArrivals(ServerCore* core, Admin* admin, Duration timeout) {
  for (const auto& [shard, owner] : core->shards().Arrivals()) {
    if (owner.server == static_cast<uint32_t>(core->options().index)) continue;
    const auto kept = admin->MoveShard(shard, owner.server, owner.lane, timeout);
    if (kept.ok()) core->shards().ForgetArrival(shard);
  }
}

// All shards of this server go to others.
Status GiveAway(ServerCore* core, TimePoint deadline) {
  const ServerOptions& options = core->options();
  ClientOptions client = ClientOptionsOf(options);
  client.connect_timeout = client.reconnect_timeout = kAdminWithin;
  Admin::Rebalance how;
  how.by_itself = true;
  how.tolerance = 1e9;  // the servers that stay keep what they have
  std::unique_ptr<Admin> admin;
  Status last;
  while (core->shards().OwnedShards() > 0) {
    if (core->stopped()) return Unavailable("it serves no client any more");
    const TimePoint now = RealClock::Get()->Now();
    if (now >= deadline) {
      return Unavailable("not all rows could be given away in time: " + last.message());
    }
    if (admin == nullptr) {
      auto connected = Admin::Connect(client, options.members);
      last = connected.status();
      if (connected.ok()) admin = std::move(*connected);
    }
    if (admin != nullptr) {
      const auto done = admin->RebalanceShards(how, deadline - now);
      last = done.status();
      const bool later = last.code() == Code::kFailedPrecondition || last.code() == Code::kAborted;
      if (!done.ok() && !later) admin = nullptr;
    }
    if (last.ok()) {
      ForgetArrivals(core, admin.get(), std::min<Duration>(deadline - now, kAdminWithin));
      continue;
    }
    LogInfo("server {}: giving its rows away: {}", options.index, last.message());
    if (!AwaitLeader(core)) return Unavailable("the leader cannot be reached: the job ends");
    core->WaitForStop(kRetryEvery);
  }
  return Status::Ok();
}

}  // namespace

Status Server::Leave(Duration timeout) {
  ServerCore& core = *impl_->core;
  const ServerOptions& options = core.options();
  const TimePoint begin = RealClock::Get()->Now(), deadline = begin + timeout;
  if (options.index == kLeader) {
    return FailedPrecondition("server 0 leads the others and cannot leave before the job ends");
  }
  if (options.members == nullptr) {
    return FailedPrecondition("this server was started without Members: it knows no others");
  }
  core.shards().SetLeaving(false);
  if (impl_->host != nullptr) impl_->host->SetLeaving();
  // With replicas another process may serve its rows; leaving does not concern that process.
  const std::vector<int> here = primary_of();
  const bool own = std::find(here.begin(), here.end(), options.index) != here.end();
  if (own) {
    TRY(GiveAway(&core, deadline).With(fmt::format("server {}", options.index)));
    TellOthers(&core, std::min(deadline, RealClock::Get()->Now() + kToldWithin));
    core.shards().SetLeaving(true);
    const TimePoint until = std::min(deadline, RealClock::Get()->Now() + kLinger);
    // A client may also end with a broken connection, so the number of clients is polled.
    while (core.ConnectedWorkers() > 0 && RealClock::Get()->Now() < until &&
           !core.WaitForStop(kLook)) {
    }
    if (const size_t left = core.ConnectedWorkers(); left > 0) {
      LogWarning("server {}: leaves while {} connections of clients are open", options.index, left);
    }
    if (!core.replicator().AnnounceEmpty(RealClock::Get()->Now() + kToldWithin)) {
      LogWarning("server {}: its copy does not answer", options.index);
    }
  }
  impl_->Stop();
  if (options.replicas > 1) AnnounceShutdown(options);
  LogInfo("server {}: has left after {}", options.index,
          FormatDuration(RealClock::Get()->Now() - begin));
  return Status::Ok();
}

}  // namespace shoal::ps
