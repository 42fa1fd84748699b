#include "ps/checkpoint/restore_point.h"

#include <fmt/format.h>

#include <thread>

#include "base/bytes.h"
#include "base/log.h"
#include "ps/server/shard_connection.h"

namespace shoal::ps {
namespace {

constexpr Duration kAskEvery = std::chrono::milliseconds(20);
constexpr Duration kAnswerWithin = std::chrono::seconds(5);
constexpr Duration kLookWithin = std::chrono::milliseconds(500);
constexpr Duration kTellAfter = std::chrono::seconds(10);

Result<RestorePoint> AskOnce(ShardDialer* dialer, int server, Duration timeout) {
  TRY_ASSIGN(const auto connection,
             dialer->Dial(MakeMoveHello(dialer->options(), server, 0), timeout));
  TRY_ASSIGN(const std::string reply, connection->SendRequest(FrameType::kRestorePoint, {},
                                                              RealClock::Get()->Now() + timeout));
  return DecodeRestorePoint(reply);
}

std::string Found(int64_t checkpoint) {
  return checkpoint < 0 ? "no checkpoint" : fmt::format("checkpoint {}", checkpoint);
}

}  // namespace

std::string EncodeRestorePoint(const RestorePoint& point) {
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put(point.restored);
  writer.Put(point.committed);
  writer.Put(point.under_way);
  writer.Put(static_cast<uint8_t>(point.in_use));
  return bytes;
}

Result<RestorePoint> DecodeRestorePoint(std::string_view bytes) {
  RestorePoint point;
  ByteReader reader(bytes);
  TRY(reader.Get(&point.restored));
  TRY(reader.Get(&point.committed));
  TRY(reader.Get(&point.under_way));
  uint8_t in_use = 0;
  TRY(reader.Get(&in_use));
  point.in_use = in_use != 0;
  return point;
}

Result<int64_t> FollowRestorePoint(const RestorePoint& leader, int64_t newest) {
  if (newest >= 0 && newest == leader.under_way) return newest;
  const bool together = leader.committed < 0;
  if (together && (leader.restored >= 0 || newest < 0)) return leader.restored;
  // What is newer than its last can only be one that it has committed since it answered.
  if (!together && newest >= 0 && newest >= leader.restored) return newest;
  return FailedPrecondition(fmt::format(
      "server 0 began with {} and has committed {} since, but the newest whole one here is {}: do "
      "all servers see the same checkpoint directory?",
      Found(leader.restored), Found(leader.committed), Found(newest)));
}

Result<RestorePoint> AskRestorePoint(const ServerOptions& options, Duration patience) {
  ShardDialer dialer(options);
  const TimePoint begin = RealClock::Get()->Now();
  bool told = false;
  for (;;) {
    const auto point = AskOnce(&dialer, kLeader, kAnswerWithin);
    if (point.ok()) return point;
    const Status status = point.status();
    if (options.stopping && options.stopping()) {
      return Cancelled("the server was stopped while it waited for server 0");
    }
    const Duration waited = RealClock::Get()->Now() - begin;
    if (waited >= patience) {
      return Unavailable(fmt::format(
          "server 0 has not said within {} which checkpoint it restored, and all must restore the "
          "same: {}",
          FormatDuration(patience), status.message()));
    }
    if (!told && waited >= kTellAfter) {
      told = true;
      LogInfo("server {}: waits for server 0 to say which checkpoint it restores: {}",
              options.index, status.message());
    }
    std::this_thread::sleep_for(kAskEvery);
  }
}

bool CameBackEmpty(const ServerOptions& options, const ShardMap& map, int64_t restored) {
  if (options.replicas > 1 || options.members == nullptr || options.incarnation < 1) return false;
  if (restored >= 0 || !OwnersOf(map).contains(options.index)) return false;
  ShardDialer dialer(options);
  for (const int other : OtherServers(options)) {
    const auto point = AskOnce(&dialer, other, kLookWithin);
    if (!point.ok() || !point->in_use) continue;
    LogWarning("server {}: came back empty while server {} has tables: rows are lost",
               options.index, other);
    return true;
  }
  return false;
}

}  // namespace shoal::ps
