#include "ps/client/auto_balancer.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"

namespace shoal::ps {
namespace {

// A server may hold so much more than the mean before anything moves; then all get as near to it as
// Admin::Rebalance::tolerance.
constexpr double kStartsAt = 0.25;
constexpr int kMovesARound = 16;
constexpr Duration kRoundWithin = std::chrono::seconds(30);
// A server that came back without its last rows gets them from a worker, which goes by what the
// server owned when it died.
constexpr Duration kAfterRestart = std::chrono::seconds(10);
constexpr Duration kConnectWithin = std::chrono::milliseconds(250);

ClientOptions Impatient(ClientOptions client) {
  client.connect_timeout = kConnectWithin;
  return client;
}

}  // namespace

AutoBalancer::AutoBalancer(ClientOptions client, Members* members, Duration every)
    : client_(Impatient(std::move(client))),
      members_(members),
      every_(every),
      thread_([this] { Run(); }) {}

AutoBalancer::~AutoBalancer() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
    if (admin_ != nullptr) admin_->Cancel();
  }
  wake_.notify_all();
  thread_.join();
}

void AutoBalancer::Run() {
  for (;;) {
    {
      MutexLock lock(mu_);
      if (wake_.wait_for(lock, every_, [this]() REQUIRES(mu_) { return stop_; })) return;
    }
    const Status status = RunOnce();
    if (status.ok()) continue;
    LogInfo("balancing the servers: {}", status.message());
    more_moves_ = false;
    // A server that leaves accepts no rows, and one may be away for a moment; else begin anew.
    if (status.code() == Code::kFailedPrecondition || status.code() == Code::kAborted) continue;
    std::shared_ptr<Admin> last;  // goes after the lock
    const MutexLock lock(mu_);
    last.swap(admin_);
  }
}

Result<std::shared_ptr<Admin>> AutoBalancer::ConnectedAdmin() {
  {
    const MutexLock lock(mu_);
    if (admin_ != nullptr) return admin_;
  }
  TRY_ASSIGN(auto connected, Admin::Connect(client_, members_));
  std::shared_ptr<Admin> admin = std::move(connected);
  const MutexLock lock(mu_);
  if (stop_) return Cancelled("the server stops");
  admin_ = admin;
  return admin;
}

Status AutoBalancer::RunOnce() {
  const MemberView view = members_->Current();
  const auto there = std::count_if(view.servers.begin(), view.servers.end(),
                                   [](const std::string& address) { return !address.empty(); });
  if (there < 2) return Status::Ok();
  TRY_ASSIGN(const std::shared_ptr<Admin> admin, ConnectedAdmin());
  const TimePoint now = RealClock::Get()->Now();
  if (admin->client().server_restarts() > restarts_) quiet_until_ = now + kAfterRestart;
  restarts_ = admin->client().server_restarts();
  if (now < quiet_until_) return Status::Ok();
  Admin::Rebalance how;
  how.by_itself = true;
  how.start = more_moves_ ? 0 : kStartsAt;
  how.most = kMovesARound;
  TRY_ASSIGN(const RebalanceInfo done, admin->RebalanceShards(how, kRoundWithin));
  more_moves_ = done.left > 0 && done.moves > 0;
  if (done.moves > 0) {
    LogInfo("balancing the servers: {} shards moved, {} to go, longest stall {}", done.moves,
            done.left, FormatDuration(done.longest_stall));
  }
  return Status::Ok();
}

}  // namespace shoal::ps
