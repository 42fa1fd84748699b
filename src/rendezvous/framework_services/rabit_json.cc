// The JSON protocol of rabit's tracker: XGBoost since 2.1.
#include "rendezvous/framework_services/rabit_worker.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

enum Command : int64_t { kStart = 1, kShutdown = 2, kError = 3, kPrint = 4 };

constexpr int32_t kAlarmSignal = -1;  // proto::Error::ErrorSignal

// Removes one message from the front of `in`; none if it is incomplete.
Result<std::optional<json::object>> TakeObject(std::string* in,
                                               const std::optional<std::string>& text,
                                               size_t bytes) {
  if (!text) return std::optional<json::object>();
  in->erase(0, bytes);
  TRY_ASSIGN(json::object object, ParseJsonObject(*text));
  return std::optional<json::object>(std::move(object));
}

Result<uint16_t> Port(const json::object& object, std::string_view field) {
  TRY_ASSIGN(const int64_t port, GetInt(object, field));
  if (port >= 1 && port <= 65535) return static_cast<uint16_t>(port);
  return InvalidArgument("got " + std::string(field) + " " + std::to_string(port) +
                         ", expected 1 … 65535");
}

}  // namespace

Result<bool> RabitTracker::ReadJsonHello(Worker* worker) {
  size_t at = 0;
  TRY_ASSIGN(const std::optional<std::string> text, worker->TextAt(&at));
  TRY_ASSIGN(const std::optional<json::object> hello, TakeObject(&worker->in, text, at));
  if (!hello) return false;
  TRY_ASSIGN(const int64_t world, GetInt(*hello, "world_size"));
  TRY_ASSIGN(const int64_t rank, GetInt(*hello, "rank"));
  TRY_ASSIGN(worker->task, GetString(*hello, "task_id"));
  if (world != -1 && world != workers_) {
    return InvalidArgument("it says that there are " + std::to_string(world) +
                           " workers, expected " + std::to_string(workers_));
  }
  if (rank < -1 || rank >= workers_) {
    return InvalidArgument("got rank " + std::to_string(rank) + " of " + std::to_string(workers_));
  }
  worker->rank = static_cast<int>(rank);
  worker->state = Worker::State::kJsonCommand;
  return true;
}

Result<bool> RabitTracker::ReadJsonCommand(Worker* worker) {
  size_t at = 0;
  TRY_ASSIGN(const std::optional<std::string> text, worker->TextAt(&at));
  TRY_ASSIGN(const std::optional<json::object> command, TakeObject(&worker->in, text, at));
  if (!command) return false;
  TRY_ASSIGN(const int64_t name, GetInt(*command, "cmd"));
  switch (name) {
    case kStart:
      TRY(StartJson(worker, *command));
      return true;
    case kShutdown:
      break;
    case kError:
      JsonFailed(*worker, *command);
      break;
    case kPrint:
      Say(RabitAction::Kind::kPrint, GetStringOr(*command, "msg", ""));
      break;
    default:
      return InvalidArgument("got command " + std::to_string(name) + ", expected 1 … 4");
  }
  Close(worker);
  return true;
}

Status RabitTracker::StartJson(Worker* worker, const json::object& command) {
  TRY_ASSIGN(worker->port, Port(command, "port"));
  TRY_ASSIGN(worker->error_port, Port(command, "error_port"));
  TRY(Enlist(worker));
  Send(*worker, RabitText(ToText(json::object{{"world_size", workers_}})));
  if (pending_.size() == static_cast<size_t>(workers_)) FormRing();
  return Status::Ok();
}

// Each worker is told its successor, from which it derives its own rank.
void RabitTracker::FormRing() {
  const std::vector<Worker*> ring = TakePending();
  alarms_.clear();
  alarmed_ = false;
  for (size_t rank = 0; rank < ring.size(); ++rank) {
    const size_t after = (rank + 1) % ring.size();
    const Worker& next = *ring[after];
    Send(
        *ring[rank],
        RabitText(ToText(json::object{{"rank", after}, {"host", next.host}, {"port", next.port}})));
    ring[rank]->rank = static_cast<int>(rank);
    ring[rank]->state = Worker::State::kOver;
    alarms_.push_back({ring[rank]->host, ring[rank]->error_port});
  }
}

// The other workers are told once; a worker that is told ends itself.
void RabitTracker::JsonFailed(const Worker& worker, const json::object& command) {
  Say(RabitAction::Kind::kNote,
      "worker " + std::to_string(worker.rank) + " at " + worker.host +
          " has failed: " + CleanText(GetStringOr(command, "msg", "it does not say why"), 2000));
  if (std::exchange(alarmed_, true)) return;
  for (size_t rank = 0; rank < alarms_.size(); ++rank) {
    if (static_cast<int>(rank) == worker.rank) continue;
    actions_.push_back({RabitAction::Kind::kAlarm, 0, RabitInt(kAlarmSignal), alarms_[rank].host,
                        alarms_[rank].port});
  }
}

}  // namespace shoal::rendezvous
