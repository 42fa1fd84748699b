// A node's life in its job: joining, its connections, barriers, and its end.
#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "bindings/ps_lite/postoffice_impl.h"
#include "ps/transport/socket.h"

namespace shoal::ps::v1::lite {
namespace {

constexpr auto kGatherTimeout = std::chrono::seconds(300);
constexpr auto kDialTimeout = std::chrono::seconds(5);
constexpr auto kDialAgain = std::chrono::milliseconds(20);
constexpr auto kGathering = std::chrono::seconds(5);  // nodes of one job come so close together
constexpr auto kRefused = std::chrono::seconds(5);    // so long a refusal may be another job's last

int IdOf(bool server, int rank) { return (server ? 8 : 9) + 2 * rank; }

}  // namespace

std::string NameOf(int id) {
  if (id == kSchedulerId) return "the scheduler";
  return fmt::format("{} {}", id % 2 == 0 ? "server" : "worker", (id - 8) / 2);
}

std::vector<int> Postoffice::Impl::Ids(int group) const {
  if (group >= 8) return {group};
  std::vector<int> ids;
  if ((group & kSchedulerId) != 0) ids.push_back(kSchedulerId);
  for (int i = 0; (group & kServers) != 0 && i < config.servers; ++i) ids.push_back(IdOf(true, i));
  for (int i = 0; (group & kWorkers) != 0 && i < config.workers; ++i) ids.push_back(IdOf(false, i));
  return ids;
}

shoal::Status Postoffice::Impl::Await(MutexLock* lock, const std::function<bool()>& done,
                                      std::optional<TimePoint> until) {
  const auto over = [&]() REQUIRES(mu) { return done() || !failed.ok(); };
  if (!until) {
    changed.wait(*lock, over);
  } else if (!changed.wait_until(*lock, *until, over)) {
    return DeadlineExceeded("not all nodes of the job came within 5 min");
  }
  return done() ? shoal::Status::Ok() : failed;
}

void Postoffice::Impl::Fail(const shoal::Status& why) {
  std::vector<std::shared_ptr<Connection>> tell;
  {
    const MutexLock lock(mu);
    if (phase == Phase::kEnding || std::exchange(failing, true)) return;
    if (id == kSchedulerId) {
      for (const auto& [node, connection] : connections) tell.push_back(connection);
      for (const Newcomer& one : newcomers) tell.push_back(one.connection);
    }
  }
  LogError("{}", why.message());
  // Before this process learns of it and ends: the other nodes shall know the cause.
  for (const auto& connection : tell) (void)connection->Send(Control(kLost, why.message()));
  const MutexLock lock(mu);
  failed = why;
  for (const auto& [key, customer] : customers) customer->Fail(why);
  changed.notify_all();
}

std::shared_ptr<Connection> Postoffice::Impl::ConnectionTo(int node) {
  const MutexLock lock(mu);
  const auto direct = connections.find(node);
  if (direct != connections.end()) return direct->second;
  const auto relay = connections.find(kSchedulerId);
  return relay == connections.end() ? nullptr : relay->second;
}

void Postoffice::Impl::Deliver(Message message, std::optional<TimePoint> since) {
  const MutexLock lock(mu);
  const auto found = customers.find({message.app, message.customer});
  if (found != customers.end()) return found->second->Accept(std::move(message));
  // Requests to a server name the worker's customer; ours is known by its app.
  const auto by_app = customers.lower_bound({message.app, INT32_MIN});
  if (message.request && by_app != customers.end() && by_app->first.first == message.app)
    return by_app->second->Accept(std::move(message));
  const bool watch = message.request && !std::exchange(watching, true);
  undelivered.push_back({std::move(message), since.value_or(RealClock::Get()->Now())});
  if (watch) threads.emplace_back([this] { WatchUndelivered(); });
}

// A program may make its KVServer a while after Start, but if it never does the sender of a request
// must not wait for ever.
void Postoffice::Impl::WatchUndelivered() {
  MutexLock lock(mu);
  while (phase != Phase::kEnding && failed.ok()) {
    const auto oldest = std::find_if(undelivered.begin(), undelivered.end(),
                                     [](const Undelivered& one) { return one.message.request; });
    if (oldest == undelivered.end()) {
      changed.wait(lock);
      continue;
    }
    const TimePoint until = oldest->since + config.app_timeout;
    if (RealClock::Get()->Now() < until) {
      changed.wait_until(lock, until);
      continue;
    }
    const Message& message = oldest->message;
    const std::string why = fmt::format(
        "{} has had a request of {} for app {} for {} s, but its program has made no {}({}): "
        "make it next to ps::Start, or set SHOAL_PS_LITE_APP_TIMEOUT to more seconds",
        NameOf(id), NameOf(message.sender), message.app, config.app_timeout.count(),
        message.simple ? "SimpleApp" : "KVServer", message.app);
    // All that are connected, before this process ends: else they see only that it has gone away.
    std::vector<std::shared_ptr<Connection>> tell;
    for (const auto& [node, connection] : connections) tell.push_back(connection);
    lock.unlock();
    for (const auto& connection : tell) (void)connection->Send(Control(kLost, why));
    return Fail(Unavailable(why));
  }
}

void Postoffice::Impl::HandleMessage(const std::shared_ptr<Connection>& connection,
                                     Message message) {
  if (message.app == kControl) return HandleControl(connection, message);
  if (message.recver == id) return Deliver(std::move(message));
  const std::shared_ptr<Connection> next =
      id == kSchedulerId ? ConnectionTo(message.recver) : nullptr;
  if (next != nullptr) (void)next->Send(message);
}

// Receives from one connection until its end.
void Postoffice::Impl::ReceiveFrom(std::shared_ptr<Connection> connection) {
  Message message;
  shoal::Status status;
  while ((status = connection->Receive(&message)).ok())
    HandleMessage(connection, std::move(message));
  int node = 0;
  bool polite = false;
  {
    const MutexLock lock(mu);
    for (const auto& [other, its] : connections) {
      if (its == connection) node = other;
    }
    polite = phase == Phase::kEnding || node == 0 || gone.contains(node);
    if (node == 0)
      std::erase_if(newcomers, [&](const Newcomer& one) { return one.connection == connection; });
    if (phase == Phase::kEnding)
      gone.insert(node);  // its good-bye may have gone down with the connection
    changed.notify_all();
  }
  if (!polite) {
    Fail(Unavailable(
        fmt::format("{} ({}) has gone away without Finalize", NameOf(node), connection->name())));
  }
}

void Postoffice::Impl::HandleControl(const std::shared_ptr<Connection>& connection,
                                     const Message& message) {
  switch (message.head) {
    case kJoin:
      return HandleJoin(connection, message);
    case kWelcome:
      return HandleWelcome(message);
    case kBarrier:
      return CountBarrier(message.customer);
    case kLost:
      return Fail(Unavailable(message.body));
    case kConflict:
      return RejectOtherJob();
    default:
      break;
  }
  const MutexLock lock(mu);
  if (message.head == kHello) connections[message.sender] = connection;
  if (message.head == kPassed) ++barriers[message.customer].passed;
  if (message.head == kBye) gone.insert(message.sender);
  changed.notify_all();
}

// Scheduler.
void Postoffice::Impl::HandleJoin(const std::shared_ptr<Connection>& connection,
                                  const Message& message) {
  {
    MutexLock lock(mu);
    const auto all = static_cast<size_t>(config.servers + config.workers);
    const bool server = message.push;
    const auto same = std::count_if(newcomers.begin(), newcomers.end(),
                                    [server](const Newcomer& one) { return one.server == server; });
    if (connections.size() >= all || same >= (server ? config.servers : config.workers)) {
      lock.unlock();
      const std::string why = fmt::format(
          "the job at {} expects {} servers and {} workers, and one {} more came: it is another "
          "job's at the same DMLC_PS_ROOT_PORT, or started twice",
          config.root, config.servers, config.workers, server ? "server" : "worker");
      (void)connection->Send(Control(kLost, why));
      return RejectOtherJob();
    }
    newcomers.push_back({connection, server, message.timestamp, message.body});
    if (newcomers.size() != all || id == 0) return;
  }
  AssignRanks();
}

// Scheduler: another one wants this address, or more nodes came than the job has, all with this
// job's token. While nodes gather they cannot be told from each other; later those that come are
// refused.
void Postoffice::Impl::RejectOtherJob() {
  {
    const MutexLock lock(mu);
    if (ranked_since && RealClock::Get()->Now() > *ranked_since + kGathering) return;
  }
  Fail(
      FailedPrecondition(fmt::format("another ps-lite job was started at {}: their nodes cannot be "
                                     "told from each other; give each "
                                     "job a DMLC_PS_ROOT_PORT of its own, or a SHOAL_TOKEN_FILE",
                                     config.root)));
}

// Assigns the wanted ranks, else ranks in the order of joining; then tells all nodes.
void Postoffice::Impl::AssignRanks() {
  std::vector<std::pair<std::shared_ptr<Connection>, Message>> messages;
  {
    const MutexLock lock(mu);
    std::stable_sort(newcomers.begin(), newcomers.end(),
                     [](const auto& a, const auto& b) { return a.wanted < b.wanted; });
    int ranks[2] = {0, 0};
    for (const Newcomer& one : newcomers) {
      const int node = IdOf(one.server, ranks[one.server]++);
      connections[node] = one.connection;
      if (one.server) servers.push_back(one.address);
    }
    if (ranks[1] != config.servers) {
      failed =
          FailedPrecondition(fmt::format("{} servers and {} workers joined, expected {} and {}",
                                         ranks[1], ranks[0], config.servers, config.workers));
    }
    std::string addresses;
    for (const std::string& address : servers) addresses += address + "\n";
    for (const auto& [node, connection] : connections) {
      Message outgoing = Control(kWelcome, addresses);
      outgoing.recver = node;
      messages.emplace_back(connection, std::move(outgoing));
    }
  }
  for (const auto& [connection, outgoing] : messages) (void)connection->Send(outgoing);
  const MutexLock lock(mu);
  ranked_since = RealClock::Get()->Now();
  newcomers.clear();
  changed.notify_all();
}

void Postoffice::Impl::HandleWelcome(const Message& message) {
  const MutexLock lock(mu);
  id = message.recver;
  for (size_t at = 0, end; (end = message.body.find('\n', at)) != std::string::npos; at = end + 1)
    servers.push_back(message.body.substr(at, end - at));
  changed.notify_all();
}

// Scheduler: one more node is in the barrier.
void Postoffice::Impl::CountBarrier(int group) {
  std::vector<std::shared_ptr<Connection>> tell;
  {
    const MutexLock lock(mu);
    const std::vector<int> ids = Ids(group);
    if (++barriers[group].entered < static_cast<int>(ids.size())) return;
    barriers[group].entered = 0;
    for (const int node : ids) {
      if (node == id) ++barriers[group].passed;
      if (const auto connection = connections.find(node); connection != connections.end())
        tell.push_back(connection->second);
    }
    changed.notify_all();
  }
  Message passed = Control(kPassed);
  passed.customer = group;
  for (const auto& connection : tell) (void)connection->Send(passed);
}

const NodeConfig& Postoffice::Impl::Config() {
  if (config_known) return config;
  const MutexLock lock(mu);
  if (config_known) return config;
  bindings::Environment env = bindings::ProcessEnvironment();
  for (const auto& [name, value] : variables) env[name] = value;
  auto found = bindings::ReadNodeConfig(env);
  if (!found.ok()) Throw(found.status());
  config = std::move(*found);
  config_known = true;
  return config;
}

void Postoffice::Impl::Open() {
  config_known = false;  // the variables may have changed since the first query
  Config();
  if (config.role != bindings::NodeRole::kWorker) Listen();
  const TimePoint until = RealClock::Get()->Now() + kGatherTimeout;
  if (config.role == bindings::NodeRole::kScheduler) {
    MutexLock lock(mu);
    id = kSchedulerId;
    const size_t all = static_cast<size_t>(config.servers + config.workers);
    const bool complete = newcomers.size() == all;
    lock.unlock();
    if (complete) AssignRanks();
    lock.lock();
    const size_t others = all;
    const shoal::Status status = Await(
        &lock, [&]() REQUIRES(mu) { return connections.size() == others; }, until);
    if (!status.ok())
      Throw(status.With(fmt::format("{} of {} nodes joined", newcomers.size(), others)));
    return;
  }
  Join();
}

void Postoffice::Impl::Listen() {
  auto listening = ps::ListenTcp(config.host, config.port, &config.port);
  if (!listening.ok()) {
    if (config.role == bindings::NodeRole::kScheduler) {
      // If another job's scheduler is there it shall know that our nodes may come to it.
      auto connection = Connection::Dial(config.root, config.token, kDialTimeout);
      if (connection.ok()) (void)(*connection)->Send(Control(kConflict));
    }
    Throw(listening.status().With("listening for the other nodes"));
  }
  auto accepting = bindings::Acceptor::Start(
      std::move(*listening), config.token, [this](std::unique_ptr<Connection> connection) {
        StartThread([this, shared = std::shared_ptr<Connection>(std::move(connection))] {
          ReceiveFrom(shared);
        });
      });
  if (!accepting.ok()) Throw(accepting.status());
  acceptor = std::move(*accepting);
}

std::shared_ptr<Connection> Postoffice::Impl::Dial(const std::string& address, TimePoint until) {
  std::optional<TimePoint> refused_until;
  while (true) {
    auto connection = Connection::Dial(address, config.token, kDialTimeout);
    if (connection.ok()) return std::shared_ptr<Connection>(std::move(*connection));
    const TimePoint now = RealClock::Get()->Now();
    const bool refused = connection.status().code() == shoal::Code::kUnauthenticated;
    // Perhaps an earlier job is about to end there.
    if (refused && !refused_until) refused_until = now + kRefused;
    if (now > until || (refused && now > *refused_until)) {
      if (!refused || !config.token_of_session) Throw(connection.status().With("joining the job"));
      Throw(Unauthenticated(fmt::format(
          "joining the job: {}; without a SHOAL_TOKEN_FILE the nodes of a job must be started by "
          "one "
          "user in one session (terminal, script or service) with the same DMLC_NUM_SERVER and "
          "DMLC_NUM_WORKER",
          connection.status().message())));
    }
    // It may not listen yet. When the job has failed meanwhile, dialling ends.
    MutexLock lock(mu);
    changed.wait_for(lock, kDialAgain, [this]() REQUIRES(mu) { return !failed.ok(); });
    if (!failed.ok()) Throw(failed.With("joining the job"));
  }
}

void Postoffice::Impl::Join() {
  const TimePoint until = RealClock::Get()->Now() + kGatherTimeout;
  const std::shared_ptr<Connection> scheduler = Dial(config.root, until);
  {
    const MutexLock lock(mu);
    connections[kSchedulerId] = scheduler;
  }
  StartThread([this, scheduler] { ReceiveFrom(scheduler); });
  Message join = Control(kJoin, fmt::format("{}:{}", config.host, config.port));
  join.push = config.role == bindings::NodeRole::kServer;
  join.timestamp = config.wanted_rank;
  Check(scheduler->Send(join));
  std::vector<std::string> addresses;
  {
    MutexLock lock(mu);
    Check(Await(
        &lock, [this]() REQUIRES(mu) { return id != 0; }, until));
    if (config.role == bindings::NodeRole::kWorker) addresses = servers;
  }
  for (size_t rank = 0; rank < addresses.size(); ++rank) {
    const std::shared_ptr<Connection> server = Dial(addresses[rank], until);
    Message hello = Control(kHello);
    hello.sender = id;
    Check(server->Send(hello));
    const MutexLock lock(mu);
    connections[IdOf(true, static_cast<int>(rank))] = server;
    threads.emplace_back([this, server] { ReceiveFrom(server); });
  }
}

void Postoffice::Impl::Close() {
  std::vector<std::shared_ptr<Connection>> all;
  {
    const MutexLock lock(mu);
    phase = Phase::kEnding;  // from now on a node that goes is no loss
    changed.notify_all();
    for (const auto& [node, connection] : connections) all.push_back(connection);
  }
  Message bye = Control(kBye);
  bye.sender = id;
  for (const auto& connection : all) (void)connection->Send(bye);
  std::vector<std::thread> last;
  {
    MutexLock lock(mu);
    // A node must have received the good-bye before it is disconnected: the scheduler waits for
    // those of all nodes.
    const size_t others = id == kSchedulerId ? connections.size() : 0;
    changed.wait_for(lock, std::chrono::seconds(5),
                     [&]() REQUIRES(mu) { return gone.size() >= others || !failed.ok(); });
  }
  acceptor.reset();  // no more threads from here on
  for (const auto& connection : all) connection->Shutdown();
  {
    const MutexLock lock(mu);
    last.swap(threads);
  }
  for (std::thread& thread : last) thread.join();
  const MutexLock lock(mu);
  connections.clear();
  gone.clear();
  servers.clear();
  newcomers.clear();
  undelivered.clear();
  watching = false;
  barriers.clear();
  id = 0;
  phase = Phase::kIdle;
  ranked_since.reset();
  delete owner.exchange(nullptr);
}

}  // namespace shoal::ps::v1::lite
