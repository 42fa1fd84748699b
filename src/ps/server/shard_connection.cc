#include "ps/server/shard_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/id.h"
#include "base/log.h"
#include "base/mutex.h"

namespace shoal::ps {

namespace {

constexpr Duration kLeaderAsks = std::chrono::milliseconds(500);
constexpr Duration kOthersAsk = std::chrono::seconds(10);

Hello ClaimOf(const ServerOptions& options, int64_t incarnation) {
  Hello hello;
  hello.kind = HelloKind::kRecoveryLookup;
  hello.session = 1;
  hello.server = hello.from = options.index;
  hello.incarnation = incarnation;
  return hello;
}

}  // namespace

uint64_t ShardConnection::Send(FrameType type, std::string_view body) {
  FrameHeader head;
  head.type = type;
  head.id = ++sent_;
  connection_->Send({head, body, nullptr});
  connection_->FlushReplies();
  return sent_;
}

Status ShardConnection::Await(uint64_t id, TimePoint deadline) {
  MutexLock lock(mu_);
  const bool done = answered_cv_.wait_until(
      lock, deadline, [&]() REQUIRES(mu_) { return answered_ >= id || !error_.ok(); });
  if (!error_.ok()) return error_;
  return done ? Status::Ok() : DeadlineExceeded("the other server did not answer in time");
}

Result<std::string> ShardConnection::SendRequest(FrameType type, std::string_view body,
                                                 TimePoint deadline) {
  TRY(Await(Send(type, body), deadline));
  const MutexLock lock(mu_);
  return reply_;
}

void ShardConnection::OnFrame(const FrameHeader& head, std::string_view body) {
  const MutexLock lock(mu_);
  if (head.type == FrameType::kError) {
    if (error_.ok()) error_ = DecodeError(body);
  } else if (head.type == FrameType::kReply) {
    answered_ = std::max(answered_, head.id);
    reply_ = body;
  }
  answered_cv_.notify_all();
}

void ShardConnection::OnClosed(const Status& why) {
  const MutexLock lock(mu_);
  if (error_.ok()) error_ = Unavailable("the other server is gone: " + why.message());
  answered_cv_.notify_all();
}

ShardDialer::ShardDialer(const ServerOptions& options)
    : options_(options), tcp_(MakeTcpTransport(options.token, options.shared_memory)) {
  if (options_.hub != nullptr) inproc_ = MakeInProcessTransport(options_.hub, options_.token);
}

Result<std::shared_ptr<ShardConnection>> ShardDialer::DialAt(const std::string& address,
                                                             const Hello& hello, Duration timeout,
                                                             Welcome* welcome) {
  const bool local = address.starts_with("inproc:");
  if (local && inproc_ == nullptr) return FailedPrecondition(address + ": there is no hub");
  TRY_ASSIGN(OpenedConnection dialled, (local ? inproc_ : tcp_)->Dial(address, hello, timeout));
  if (welcome != nullptr) *welcome = dialled.welcome;
  auto connection = std::make_shared<ShardConnection>(std::move(dialled.connection));
  const MutexLock lock(mu_);
  if (stopped_) return Unavailable("the server stops");
  std::erase_if(connections_, [](const auto& one) { return one.expired(); });
  connections_.push_back(connection);
  connection->Start();
  return connection;
}

void ShardDialer::Stop() {
  std::vector<std::weak_ptr<ShardConnection>> connections;
  {
    const MutexLock lock(mu_);
    stopped_ = true;
    connections.swap(connections_);
  }
  for (const auto& weak : connections) {
    if (const auto connection = weak.lock()) connection->OnClosed(Unavailable("the server stops"));
  }
}

Result<std::shared_ptr<ShardConnection>> ShardDialer::Dial(const Hello& hello, Duration timeout) {
  const MemberView view = options_.members->Current();
  const auto first = static_cast<size_t>(hello.server);
  const bool named = first < view.servers.size();
  const size_t places = options_.replicas > 1 ? view.servers.size() : (named ? 1 : 0);
  Status status = Unavailable(fmt::format("server {} has no address", hello.server));
  for (size_t step = 0; step < places; ++step) {
    const std::string& address = view.servers[(first + step) % view.servers.size()];
    if (address.empty()) continue;
    auto connection = DialAt(address, hello, timeout);
    if (connection.ok()) return connection;
    status = connection.status();
  }
  return status;
}

Hello MakeMoveHello(const ServerOptions& options, int server, uint32_t lane) {
  Hello hello;
  hello.kind = HelloKind::kMove;
  hello.server = server;
  hello.lane = lane;
  hello.from = options.index;
  hello.incarnation = options.incarnation;
  hello.session = RandomSeed() | 1;
  return hello;
}

std::set<int> OtherServers(const ServerOptions& options) {
  std::set<int> others;
  const size_t named = options.members->Current().servers.size();
  for (int other = 0; other < static_cast<int>(named); ++other) {
    if (other != options.index) others.insert(other);
  }
  return others;
}

void SendShardMap(ShardDialer* dialer, const ShardMap& map, Duration timeout, std::set<int>* whom) {
  const std::string body = EncodeShards(map);
  std::erase_if(*whom, [&](int other) {
    const ServerOptions& options = dialer->options();
    if (!OtherServers(options).contains(other)) return true;
    const auto connection = dialer->Dial(MakeMoveHello(options, other, 0), timeout);
    return connection.ok() &&
           (*connection)
               ->SendRequest(FrameType::kShards, body, RealClock::Get()->Now() + timeout)
               .ok();
  });
}

int LookUpInitialServers(const ServerOptions& options) {
  if (options.members == nullptr || options.incarnation < 1) return options.servers;
  ShardDialer dialer(options);
  const Duration patience = options.index == kLeader ? kLeaderAsks : kOthersAsk;
  const TimePoint deadline = RealClock::Get()->Now() + patience;
  for (bool others = true; others;) {
    others = false;
    const MemberView view = options.members->Current();
    for (size_t other = 0; other < view.servers.size(); ++other) {
      if (view.servers[other].empty() || other == static_cast<size_t>(options.index)) continue;
      others = true;
      Welcome welcome;
      const auto connection = dialer.DialAt(
          view.servers[other], ClaimOf(options, options.incarnation), kLeaderAsks, &welcome);
      if (connection.ok() && welcome.servers > 0) return welcome.servers;
    }
    if (RealClock::Get()->Now() >= deadline) break;
    if (others) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return options.servers;
}

void AnnounceShutdown(const ServerOptions& options) {
  ShardDialer dialer(options);
  const MemberView view = options.members->Current();
  for (size_t other = 0; other < view.servers.size(); ++other) {
    if (view.servers[other].empty() || other == static_cast<size_t>(options.index)) continue;
    const auto connection =
        dialer.DialAt(view.servers[other], ClaimOf(options, options.incarnation + 1), kLeaderAsks);
    if (!connection.ok()) LogInfo("server {}: {}", other, connection.status().message());
  }
}

Result<ShardMap> LearnShards(ShardDialer* dialer, uint32_t shards, Duration patience) {
  const ServerOptions& options = dialer->options();
  ShardMap known{Partition(shards, std::vector<uint32_t>(1, 1))};
  const TimePoint deadline = RealClock::Get()->Now() + patience;
  std::set<size_t> heard = {static_cast<size_t>(options.index)};
  for (;;) {
    const MemberView view = options.members->Current();
    for (size_t other = 0; other < view.servers.size(); ++other) {
      if (heard.contains(other) || view.servers[other].empty()) continue;
      const auto connection =
          dialer->DialAt(view.servers[other], ClaimOf(options, options.incarnation), patience);
      if (!connection.ok()) continue;
      const auto reply =
          (*connection)->SendRequest(FrameType::kShards, {}, RealClock::Get()->Now() + patience);
      if (!reply.ok()) continue;
      ShardMap theirs;
      TRY(DecodeShards(*reply, shards, &theirs));
      known.Merge(theirs);
      heard.insert(other);
    }
    // A server that Members does not name has not started, or is known to be away.
    bool all = true;
    for (size_t other = 0; other < view.servers.size(); ++other) {
      all = all && (heard.contains(other) || view.servers[other].empty());
    }
    if (all) return known;
    if (RealClock::Get()->Now() >= deadline) return known;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace shoal::ps
