#include "rendezvous/framework_services/rabit_tracker.h"

#include <algorithm>
#include <charconv>

#include "rendezvous/framework_services/rabit_worker.h"

namespace shoal::rendezvous {
namespace {

// The task id as a rank of `workers`; -1 if it is none.
int AsRank(const std::string& task, int workers) {
  int rank = -1;
  const auto [end, error] = std::from_chars(task.data(), task.data() + task.size(), rank);
  return error == std::errc() && end == task.data() + task.size() && rank < workers ? rank : -1;
}

}  // namespace

RabitTracker::RabitTracker(int workers) : workers_(workers), links_(BuildRabitTopology(workers)) {}

RabitTracker::~RabitTracker() = default;

void RabitTracker::Opened(Connection connection, std::string host) {
  auto worker = std::make_unique<Worker>();
  worker->id = connection;
  worker->host = std::move(host);
  connections_[connection] = std::move(worker);
}

RabitTracker::Actions RabitTracker::Received(Connection connection, std::string_view bytes) {
  Worker* worker = Find(connection);
  if (worker == nullptr) return {};
  if (worker->state != Worker::State::kOver) worker->in.append(bytes);
  while (worker != nullptr) {
    const auto more = Step(worker);
    if (!more.ok()) Close(worker, more.status().message());
    if (!more.ok() || !*more) break;
    worker = Find(connection);
  }
  return std::exchange(actions_, {});
}

RabitTracker::Actions RabitTracker::Closed(Connection connection) {
  if (connections_.erase(connection) == 0) return {};
  std::erase(pending_, connection);
  const bool at_turn = !linking_.empty() && linking_.front() == connection;
  std::erase(linking_, connection);
  if (at_turn) LinkNext();
  return std::exchange(actions_, {});
}

bool RabitTracker::IsSilent(Connection connection) const {
  const Worker* worker = Find(connection);
  return worker != nullptr && worker->state <= Worker::State::kJsonCommand;
}

Result<bool> RabitTracker::Step(Worker* worker) {
  using State = Worker::State;
  switch (worker->state) {
    case State::kMagic:
      return ReadMagic(worker);
    case State::kHello:
      return ReadHello(worker);
    case State::kPrint:
      return ReadPrint(worker);
    case State::kJsonCommand:
      return ReadJsonCommand(worker);
    case State::kGood:
      return ReadGood(worker);
    case State::kErrors:
      return ReadErrors(worker);
    case State::kPort:
      return ReadPort(worker);
    case State::kPending:
    case State::kTurn:
      // XGBoost says that it listens while it waits; no worker says more.
      if (worker->in.size() > 1024) return InvalidArgument("it speaks before it has got its rank");
      return false;
    case State::kOver:
      worker->in.clear();
      return false;
  }
  return false;
}

Result<bool> RabitTracker::ReadMagic(Worker* worker) {
  const auto magic = worker->Int();
  if (!magic) return false;
  if (*magic != kRabitMagic) return InvalidArgument("it is not a worker of rabit or XGBoost");
  Send(*worker, RabitInt(kRabitMagic));
  worker->state = Worker::State::kHello;
  return true;
}

Result<bool> RabitTracker::ReadHello(Worker* worker) {
  if (worker->in.size() < 8) return false;
  // A JSON object behind its length, or a rank and the number of workers, which is no text.
  worker->json = worker->in[4] == '{' && worker->in[7] >= '\t';
  return worker->json ? ReadJsonHello(worker) : ReadBinaryHello(worker);
}

Result<bool> RabitTracker::ReadPrint(Worker* worker) {
  size_t at = 0;
  TRY_ASSIGN(const std::optional<std::string> text, worker->TextAt(&at));
  if (!text) return false;
  Say(RabitAction::Kind::kPrint, *text);
  Close(worker);
  return true;
}

Status RabitTracker::Enlist(Worker* worker) {
  for (const Connection other : pending_) {
    if (Find(other)->json != worker->json) {
      return FailedPrecondition(
          "it speaks another protocol than the workers before it; all need the same XGBoost");
    }
  }
  if (pending_.size() >= static_cast<size_t>(workers_)) {
    return FailedPrecondition("all " + std::to_string(workers_) + " workers are there already");
  }
  pending_.push_back(worker->id);
  worker->state = Worker::State::kPending;
  return Status::Ok();
}

std::vector<RabitTracker::Worker*> RabitTracker::TakePending() {
  std::vector<Worker*> workers;
  std::set<int> named;
  for (const Connection id : pending_) {
    workers.push_back(Find(id));
    named.insert(AsRank(workers.back()->task, workers_));
  }
  pending_.clear();
  const bool by_task = named.size() == workers.size() && !named.contains(-1);
  std::stable_sort(workers.begin(), workers.end(), [&](const Worker* a, const Worker* b) {
    return by_task ? AsRank(a->task, workers_) < AsRank(b->task, workers_) : a->host < b->host;
  });
  return workers;
}

RabitTracker::Worker* RabitTracker::Find(Connection connection) const {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : found->second.get();
}

void RabitTracker::Send(const Worker& worker, std::string bytes) {
  actions_.push_back({RabitAction::Kind::kSend, worker.id, std::move(bytes), {}, 0});
}

void RabitTracker::Close(Worker* worker, std::string why) {
  const Connection id = worker->id;
  actions_.push_back({RabitAction::Kind::kClose, id, std::move(why), {}, 0});
  Actions before = std::exchange(actions_, {});
  Actions after = Closed(id);
  before.insert(before.end(), after.begin(), after.end());
  actions_ = std::move(before);
}

void RabitTracker::Say(RabitAction::Kind kind, std::string text) {
  actions_.push_back({kind, 0, std::move(text), {}, 0});
}

}  // namespace shoal::rendezvous
