#include "door/lite/seat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace shoal::door {
namespace {

Result<SeatRole> RoleOf(const std::string& variable, const std::string& name) {
  if (name == "scheduler") return SeatRole::kScheduler;
  if (name == "server") return SeatRole::kServer;
  if (name == "worker") return SeatRole::kWorker;
  return InvalidArgument(
      fmt::format("{}: got '{}', expected scheduler, server or worker", variable, name));
}

Result<int> Need(const Environment& env, const std::string& name, int limit) {
  const std::string text = Variable(env, name);
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= limit)
    return value;
  return InvalidArgument(
      fmt::format("{}: got '{}', expected a number from 0 to {}; start all nodes with DMLC_ROLE, "
                  "DMLC_NUM_WORKER, DMLC_NUM_SERVER, DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT, or as "
                  "a Shoal job with the roles scheduler, server and worker",
                  name, text, limit));
}

bool IsLoopback(const std::string& host) {
  return host.starts_with("127.") || host == "localhost" || host == "::1";
}

// What all nodes of a job that is started on one machine have in common, and other jobs there do
// not: the user, the session (terminal, batch script, service) and what DMLC_… says of the job.
std::string TokenOfSession(const Seat& seat) {
  return fmt::format("ps-lite on one machine: user {}, session {}, {}, {} servers, {} workers",
                     ::getuid(), ::getsid(0), seat.root, seat.servers, seat.workers);
}

Result<Seat> SeatInShoal(const Environment& env) {
  TRY_ASSIGN(const Place place, ReadPlace(env));
  Seat seat;
  TRY_ASSIGN(seat.role, RoleOf("SHOAL_ROLE", place.role));
  seat.workers = CountOf(place.cluster, "worker");
  seat.servers = CountOf(place.cluster, "server");
  TRY_ASSIGN(const std::vector<std::string> scheduler, AddressesOf(place.cluster, "scheduler"));
  seat.root = scheduler[0];
  seat.host = place.host;
  seat.port = place.port;
  seat.wanted_rank = place.index;
  seat.token = place.token;
  return seat;
}

Result<Seat> SeatInDmlc(const Environment& env) {
  Seat seat;
  TRY_ASSIGN(seat.role, RoleOf("DMLC_ROLE", Variable(env, "DMLC_ROLE")));
  TRY_ASSIGN(seat.workers, Need(env, "DMLC_NUM_WORKER", 100'000));
  TRY_ASSIGN(seat.servers, Need(env, "DMLC_NUM_SERVER", 65'535));
  TRY_ASSIGN(const int port, Need(env, "DMLC_PS_ROOT_PORT", UINT16_MAX));
  const std::string host = Variable(env, "DMLC_PS_ROOT_URI");
  if (host.empty())
    return InvalidArgument("DMLC_PS_ROOT_URI: missing, expected the scheduler's host");
  seat.root = fmt::format("{}:{}", host, port);
  seat.host = Variable(env, "DMLC_NODE_HOST");
  if (seat.role == SeatRole::kScheduler) {
    seat.port = static_cast<uint16_t>(port);
    if (seat.host.empty()) seat.host = host;
  } else if (const char* own = std::getenv("PORT"); own != nullptr && *own != 0) {
    TRY_ASSIGN(const int number, Need({{"PORT", own}}, "PORT", UINT16_MAX));
    seat.port = static_cast<uint16_t>(number);
  }
  if (seat.host.empty() && IsLoopback(host)) seat.host = "127.0.0.1";
  if (seat.host.empty() && seat.role == SeatRole::kServer) {
    return InvalidArgument(
        "DMLC_NODE_HOST: missing, expected the address at which others reach this server");
  }
  const std::string token_file = Variable(env, "SHOAL_TOKEN_FILE");
  if (!token_file.empty()) {
    TRY_ASSIGN(seat.token, ReadToken(token_file));
  } else if (!IsLoopback(host) || (!seat.host.empty() && !IsLoopback(seat.host))) {
    return FailedPrecondition(
        "nodes on a network need a secret: put the same one into a file of every node (readable by "
        "its user alone) and name it in SHOAL_TOKEN_FILE");
  } else {
    seat.token = TokenOfSession(seat);
    seat.token_of_session = true;
  }
  return seat;
}

}  // namespace

Result<Seat> FindSeat(const Environment& env) {
  const bool shoal = Variable(env, "DMLC_ROLE").empty() && !Variable(env, "SHOAL_ROLE").empty();
  TRY_ASSIGN(Seat seat, shoal ? SeatInShoal(env) : SeatInDmlc(env));
  const std::string name = "SHOAL_PS_LITE_APP_TIMEOUT";
  if (Variable(env, name).empty()) return seat;
  TRY_ASSIGN(const int seconds, Need(env, name, 1'000'000));
  seat.app_timeout = std::chrono::seconds(seconds);
  return seat;
}

}  // namespace shoal::door
