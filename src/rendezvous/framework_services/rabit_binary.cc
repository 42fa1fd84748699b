// The binary protocol of rabit's tracker: rabit's own programs, and XGBoost before 2.1.
#include <algorithm>

#include "rendezvous/framework_services/rabit_worker.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

Result<bool> RabitTracker::ReadBinaryHello(Worker* worker) {
  size_t at = 2 * sizeof(int32_t);
  TRY_ASSIGN(const std::optional<std::string> task, worker->TextAt(&at));
  if (!task) return false;
  TRY_ASSIGN(const std::optional<std::string> command, worker->TextAt(&at));
  if (!command) return false;
  const int32_t rank = *worker->IntAt(0);
  const int32_t world = *worker->IntAt(sizeof(int32_t));
  worker->in.erase(0, at);
  // 0 and less stand for the tracker's own number.
  if (world > 0 && world != workers_) {
    return InvalidArgument("it says that there are " + std::to_string(world) +
                           " workers, expected " + std::to_string(workers_));
  }
  if (rank < -1 || rank >= workers_) {
    return InvalidArgument("got rank " + std::to_string(rank) + " of " + std::to_string(workers_));
  }
  worker->rank = rank;
  if (*task != "NULL") worker->task = *task;
  if (*command == "print") {
    worker->state = Worker::State::kPrint;
  } else if (*command == "shutdown") {
    TRY(ShutDown(worker));
  } else if (*command == "start" || *command == "recover") {
    TRY(StartBinary(worker, *command == "recover"));
  } else {
    return InvalidArgument("got command '" + CleanText(*command, 40) +
                           "', expected start, recover, print or shutdown");
  }
  return true;
}

Status RabitTracker::StartBinary(Worker* worker, bool recover) {
  if (!ranked_ && (recover || worker->rank >= 0)) {
    return FailedPrecondition("it comes with a rank, and no ranks were given out yet");
  }
  if (recover && worker->rank < 0) return InvalidArgument("it recovers without a rank");
  if (worker->rank < 0) {
    const auto known = rank_of_task_.find(worker->task);
    if (known != rank_of_task_.end() && !down_.contains(known->second)) {
      worker->rank = known->second;
    }
  }
  if (worker->rank < 0) {
    TRY(Enlist(worker));
    AssignRanks();
    return Status::Ok();
  }
  listeners_.erase(worker->rank);  // of an earlier attempt
  worker->state = Worker::State::kTurn;
  linking_.push_back(worker->id);
  if (linking_.size() == 1) LinkNext();
  return Status::Ok();
}

Status RabitTracker::ShutDown(Worker* worker) {
  if (!ranked_ || worker->rank < 0) {
    return InvalidArgument("it shuts down a rank that was never given out");
  }
  down_.insert(worker->rank);
  if (down_.size() == static_cast<size_t>(workers_)) {
    ranked_ = false;
    down_.clear();
    rank_of_task_.clear();
    listeners_.clear();
  }
  Close(worker);
  AssignRanks();
  return Status::Ok();
}

// In one batch, when all workers are there.
void RabitTracker::AssignRanks() {
  if (ranked_ || pending_.size() < static_cast<size_t>(workers_) || Find(pending_[0])->json) return;
  int rank = 0;
  for (Worker* worker : TakePending()) {
    worker->rank = rank++;
    worker->state = Worker::State::kTurn;
    if (!worker->task.empty()) rank_of_task_[worker->task] = worker->rank;
    linking_.push_back(worker->id);
  }
  ranked_ = true;
  LinkNext();
}

// Tells the first of `linking_` its rank and its neighbours that have linked already. One worker
// after the other: each connects to those before it and waits for those behind it.
void RabitTracker::LinkNext() {
  if (linking_.empty()) return;
  Worker* worker = Find(linking_.front());
  const RabitTopology& links = links_[static_cast<size_t>(worker->rank)];
  std::string bytes = RabitInt(worker->rank) + RabitInt(links.parent) + RabitInt(workers_) +
                      RabitInt(static_cast<int32_t>(links.tree.size()));
  for (const int neighbour : links.tree) bytes += RabitInt(neighbour);
  for (const int neighbour : {links.previous, links.next}) {
    bytes += RabitInt(neighbour == worker->rank ? -1 : neighbour);
  }
  Send(*worker, std::move(bytes));
  worker->state = Worker::State::kGood;
}

Result<bool> RabitTracker::ReadGood(Worker* worker) {
  const std::set<int> neighbours =
      links_[static_cast<size_t>(worker->rank)].Neighbours(worker->rank);
  const auto count = worker->IntAt(0);
  if (!count) return false;
  if (*count < 0 || static_cast<size_t>(*count) > neighbours.size()) {
    return InvalidArgument("it says that it holds " + std::to_string(*count) +
                           " connections, expected at most " + std::to_string(neighbours.size()));
  }
  if (worker->in.size() < sizeof(int32_t) * static_cast<size_t>(*count + 1)) return false;
  std::set<int> bad = neighbours;
  worker->Int();
  for (int i = 0; i < *count; ++i) {
    const int good = *worker->Int();
    if (!neighbours.contains(good)) {
      return InvalidArgument("it is connected to rank " + std::to_string(good) +
                             ", which is not its neighbour");
    }
    bad.erase(good);
  }
  worker->offered.clear();
  std::string peers;
  for (const int rank : bad) {
    const auto found = listeners_.find(rank);
    if (found == listeners_.end()) continue;
    worker->offered.push_back(rank);
    peers += RabitText(found->second.host) + RabitInt(found->second.port) + RabitInt(rank);
  }
  worker->accepts = static_cast<int>(bad.size() - worker->offered.size());
  Send(*worker,
       RabitInt(static_cast<int32_t>(worker->offered.size())) + RabitInt(worker->accepts) + peers);
  worker->state = Worker::State::kErrors;
  return true;
}

Result<bool> RabitTracker::ReadErrors(Worker* worker) {
  const auto errors = worker->Int();
  if (!errors) return false;
  worker->state = *errors == 0 ? Worker::State::kPort : Worker::State::kGood;
  return true;
}

Result<bool> RabitTracker::ReadPort(Worker* worker) {
  const auto port = worker->Int();
  if (!port) return false;
  if (*port < 1 || *port > 65535) {
    return InvalidArgument("it listens at port " + std::to_string(*port) + ", expected 1 … 65535");
  }
  for (const int rank : worker->offered) {
    const auto found = listeners_.find(rank);
    if (found != listeners_.end() && --found->second.accepts <= 0) listeners_.erase(found);
  }
  if (worker->accepts > 0) {
    listeners_[worker->rank] = {worker->host, static_cast<uint16_t>(*port), worker->accepts};
  }
  worker->state = Worker::State::kOver;
  std::erase(linking_, worker->id);
  LinkNext();
  return true;
}

}  // namespace shoal::rendezvous
