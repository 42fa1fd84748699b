// A node's life in its job: joining, its connections, barriers, and its end.
#include <algorithm>

#include "base/log.h"
#include "door/lite/post_impl.h"
#include "ps/socket.h"

namespace shoal::ps::v1::lite {
namespace {

constexpr auto kGather = std::chrono::seconds(300);
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

std::vector<int> Post::Impl::Ids(int group) const {
  if (group >= 8) return {group};
  std::vector<int> ids;
  if ((group & kSchedulerId) != 0) ids.push_back(kSchedulerId);
  for (int i = 0; (group & kServers) != 0 && i < seat.servers; ++i) ids.push_back(IdOf(true, i));
  for (int i = 0; (group & kWorkers) != 0 && i < seat.workers; ++i) ids.push_back(IdOf(false, i));
  return ids;
}

shoal::Status Post::Impl::Await(std::unique_lock<std::mutex>* lock,
                                const std::function<bool()>& done, std::optional<TimePoint> until) {
  const auto over = [&] { return done() || !failed.ok(); };
  if (!until) {
    changed.wait(*lock, over);
  } else if (!changed.wait_until(*lock, *until, over)) {
    return DeadlineExceeded("not all nodes of the job came within 5 min");
  }
  return done() ? shoal::Status::Ok() : failed;
}

void Post::Impl::Fail(const shoal::Status& why) {
  std::vector<std::shared_ptr<Line>> tell;
  {
    const std::lock_guard lock(mu);
    if (ending || std::exchange(failing, true)) return;
    if (id == kSchedulerId) {
      for (const auto& [node, line] : lines) tell.push_back(line);
      for (const Newcomer& one : newcomers) tell.push_back(one.line);
    }
  }
  LogError("{}", why.message());
  // Before anybody here hears of it and ends: the others shall know whose fault it was.
  for (const auto& line : tell) (void)line->Send(Control(kLost, why.message()));
  const std::lock_guard lock(mu);
  failed = why;
  for (const auto& [key, customer] : customers) customer->Fail(why);
  changed.notify_all();
}

std::shared_ptr<Line> Post::Impl::LineTo(int node) {
  const std::lock_guard lock(mu);
  const auto direct = lines.find(node);
  if (direct != lines.end()) return direct->second;
  const auto relay = lines.find(kSchedulerId);
  return relay == lines.end() ? nullptr : relay->second;
}

void Post::Impl::Deliver(Message message, std::optional<TimePoint> since) {
  const std::lock_guard lock(mu);
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
void Post::Impl::WatchUndelivered() {
  std::unique_lock lock(mu);
  while (!ending && failed.ok()) {
    const auto oldest = std::find_if(undelivered.begin(), undelivered.end(),
                                     [](const Undelivered& one) { return one.message.request; });
    if (oldest == undelivered.end()) {
      changed.wait(lock);
      continue;
    }
    const TimePoint until = oldest->since + seat.app_timeout;
    if (RealClock::Get()->Now() < until) {
      changed.wait_until(lock, until);
      continue;
    }
    const Message& message = oldest->message;
    const std::string why = fmt::format(
        "{} has had a request of {} for app {} for {} s, but its program has made no {}({}): "
        "make it next to ps::Start, or set SHOAL_PS_LITE_APP_TIMEOUT to more seconds",
        NameOf(id), NameOf(message.sender), message.app, seat.app_timeout.count(),
        message.simple ? "SimpleApp" : "KVServer", message.app);
    // All that are connected, before this process ends: else they see only that it has gone away.
    std::vector<std::shared_ptr<Line>> tell;
    for (const auto& [node, line] : lines) tell.push_back(line);
    lock.unlock();
    for (const auto& line : tell) (void)line->Send(Control(kLost, why));
    return Fail(Unavailable(why));
  }
}

void Post::Impl::Take(const std::shared_ptr<Line>& line, Message message) {
  if (message.app == kControl) return TakeControl(line, message);
  if (message.recver == id) return Deliver(std::move(message));
  const std::shared_ptr<Line> next = id == kSchedulerId ? LineTo(message.recver) : nullptr;
  if (next != nullptr) (void)next->Send(message);
}

// One connection's whole life.
void Post::Impl::Attend(std::shared_ptr<Line> line) {
  Message message;
  shoal::Status status;
  while ((status = line->Receive(&message)).ok()) Take(line, std::move(message));
  int node = 0;
  bool polite = false;
  {
    const std::lock_guard lock(mu);
    for (const auto& [other, its] : lines) {
      if (its == line) node = other;
    }
    polite = ending || node == 0 || gone.contains(node);
    if (node == 0) std::erase_if(newcomers, [&](const Newcomer& one) { return one.line == line; });
    if (ending) gone.insert(node);  // its good-bye may have gone down with the connection
    changed.notify_all();
  }
  if (!polite) {
    Fail(Unavailable(
        fmt::format("{} ({}) has gone away without Finalize", NameOf(node), line->name())));
  }
}

void Post::Impl::TakeControl(const std::shared_ptr<Line>& line, const Message& message) {
  switch (message.head) {
    case kJoin:
      return TakeJoin(line, message);
    case kWelcome:
      return TakeWelcome(message);
    case kBarrier:
      return CountBarrier(message.customer);
    case kLost:
      return Fail(Unavailable(message.body));
    case kConflict:
      return RejectOtherJob();
    default:
      break;
  }
  const std::lock_guard lock(mu);
  if (message.head == kHello) lines[message.sender] = line;
  if (message.head == kPassed) ++barrier_passed[message.customer];
  if (message.head == kBye) gone.insert(message.sender);
  changed.notify_all();
}

// Scheduler.
void Post::Impl::TakeJoin(const std::shared_ptr<Line>& line, const Message& message) {
  {
    std::unique_lock lock(mu);
    const auto all = static_cast<size_t>(seat.servers + seat.workers);
    const bool server = message.push;
    const auto same = std::count_if(newcomers.begin(), newcomers.end(),
                                    [server](const Newcomer& one) { return one.server == server; });
    if (lines.size() >= all || same >= (server ? seat.servers : seat.workers)) {
      lock.unlock();
      const std::string why = fmt::format(
          "the job at {} expects {} servers and {} workers, and one {} more came: it is another "
          "job's at the same DMLC_PS_ROOT_PORT, or started twice",
          seat.root, seat.servers, seat.workers, server ? "server" : "worker");
      (void)line->Send(Control(kLost, why));
      return RejectOtherJob();
    }
    newcomers.push_back({line, server, message.timestamp, message.body});
    if (newcomers.size() != all || id == 0) return;
  }
  Seated();
}

// Scheduler: another one wants this address, or more nodes came than the job has, all with this
// job's token. While nodes gather they cannot be told from each other; later those that come are
// refused.
void Post::Impl::RejectOtherJob() {
  {
    const std::lock_guard lock(mu);
    if (seated && RealClock::Get()->Now() > *seated + kGathering) return;
  }
  Fail(
      FailedPrecondition(fmt::format("another ps-lite job was started at {}: their nodes cannot be "
                                     "told from each other; give each "
                                     "job a DMLC_PS_ROOT_PORT of its own, or a SHOAL_TOKEN_FILE",
                                     seat.root)));
}

// Ranks as they were wished for, else in the order of joining; then everybody is told.
void Post::Impl::Seated() {
  std::vector<std::pair<std::shared_ptr<Line>, Message>> letters;
  {
    const std::lock_guard lock(mu);
    std::stable_sort(newcomers.begin(), newcomers.end(),
                     [](const auto& a, const auto& b) { return a.wanted < b.wanted; });
    int ranks[2] = {0, 0};
    for (const Newcomer& one : newcomers) {
      const int node = IdOf(one.server, ranks[one.server]++);
      lines[node] = one.line;
      if (one.server) servers.push_back(one.address);
    }
    if (ranks[1] != seat.servers) {
      failed =
          FailedPrecondition(fmt::format("{} servers and {} workers joined, expected {} and {}",
                                         ranks[1], ranks[0], seat.servers, seat.workers));
    }
    std::string addresses;
    for (const std::string& address : servers) addresses += address + "\n";
    for (const auto& [node, line] : lines) {
      Message letter = Control(kWelcome, addresses);
      letter.recver = node;
      letters.emplace_back(line, std::move(letter));
    }
  }
  for (const auto& [line, letter] : letters) (void)line->Send(letter);
  const std::lock_guard lock(mu);
  seated = RealClock::Get()->Now();
  newcomers.clear();
  changed.notify_all();
}

void Post::Impl::TakeWelcome(const Message& message) {
  const std::lock_guard lock(mu);
  id = message.recver;
  for (size_t at = 0, end; (end = message.body.find('\n', at)) != std::string::npos; at = end + 1)
    servers.push_back(message.body.substr(at, end - at));
  changed.notify_all();
}

// Scheduler: one more node is in the barrier.
void Post::Impl::CountBarrier(int group) {
  std::vector<std::shared_ptr<Line>> tell;
  {
    const std::lock_guard lock(mu);
    const std::vector<int> ids = Ids(group);
    if (++barrier_in[group] < static_cast<int>(ids.size())) return;
    barrier_in[group] = 0;
    for (const int node : ids) {
      if (node == id) ++barrier_passed[group];
      if (const auto line = lines.find(node); line != lines.end()) tell.push_back(line->second);
    }
    changed.notify_all();
  }
  Message passed = Control(kPassed);
  passed.customer = group;
  for (const auto& line : tell) (void)line->Send(passed);
}

const Seat& Post::Impl::Where() {
  if (knows_seat) return seat;
  const std::lock_guard lock(mu);
  if (knows_seat) return seat;
  door::Environment env = door::RealEnvironment();
  for (const auto& [name, value] : variables) env[name] = value;
  auto found = door::FindSeat(env);
  if (!found.ok()) Throw(found.status());
  seat = std::move(*found);
  knows_seat = true;
  return seat;
}

void Post::Impl::Open() {
  knows_seat = false;  // they may have changed since somebody asked
  Where();
  if (seat.role != door::SeatRole::kWorker) Listen();
  const TimePoint until = RealClock::Get()->Now() + kGather;
  if (seat.role == door::SeatRole::kScheduler) {
    std::unique_lock lock(mu);
    id = kSchedulerId;
    const size_t all = static_cast<size_t>(seat.servers + seat.workers);
    const bool complete = newcomers.size() == all;
    lock.unlock();
    if (complete) Seated();
    lock.lock();
    const size_t others = all;
    const shoal::Status status = Await(
        &lock, [&] { return lines.size() == others; }, until);
    if (!status.ok())
      Throw(status.With(fmt::format("{} of {} nodes joined", newcomers.size(), others)));
    return;
  }
  Join();
}

void Post::Impl::Listen() {
  auto listening = ps::ListenTcp(seat.host, seat.port, &seat.port);
  if (!listening.ok()) {
    if (seat.role == door::SeatRole::kScheduler) {
      // If another job's scheduler is there it shall know that our nodes may come to it.
      auto line = Line::Dial(seat.root, seat.token, kDialTimeout);
      if (line.ok()) (void)(*line)->Send(Control(kConflict));
    }
    Throw(listening.status().With("listening for the other nodes"));
  }
  auto accepting =
      door::Acceptor::Start(std::move(*listening), seat.token, [this](std::unique_ptr<Line> line) {
        StartThread([this, shared = std::shared_ptr<Line>(std::move(line))] { Attend(shared); });
      });
  if (!accepting.ok()) Throw(accepting.status());
  acceptor = std::move(*accepting);
}

std::shared_ptr<Line> Post::Impl::Dial(const std::string& address, TimePoint until) {
  std::optional<TimePoint> refused_until;
  while (true) {
    auto line = Line::Dial(address, seat.token, kDialTimeout);
    if (line.ok()) return std::shared_ptr<Line>(std::move(*line));
    const TimePoint now = RealClock::Get()->Now();
    const bool refused = line.status().code() == shoal::Code::kUnauthenticated;
    // Perhaps an earlier job is about to end there.
    if (refused && !refused_until) refused_until = now + kRefused;
    if (now > until || (refused && now > *refused_until)) {
      if (!refused || !seat.token_of_session) Throw(line.status().With("joining the job"));
      Throw(Unauthenticated(fmt::format(
          "joining the job: {}; without a SHOAL_TOKEN_FILE the nodes of a job must be started by "
          "one "
          "user in one session (terminal, script or service) with the same DMLC_NUM_SERVER and "
          "DMLC_NUM_WORKER",
          line.status().message())));
    }
    // It may not listen yet. Who hears meanwhile that the job has failed does not try on.
    std::unique_lock lock(mu);
    changed.wait_for(lock, kDialAgain, [this] { return !failed.ok(); });
    if (!failed.ok()) Throw(failed.With("joining the job"));
  }
}

void Post::Impl::Join() {
  const TimePoint until = RealClock::Get()->Now() + kGather;
  const std::shared_ptr<Line> scheduler = Dial(seat.root, until);
  {
    const std::lock_guard lock(mu);
    lines[kSchedulerId] = scheduler;
  }
  StartThread([this, scheduler] { Attend(scheduler); });
  Message join = Control(kJoin, fmt::format("{}:{}", seat.host, seat.port));
  join.push = seat.role == door::SeatRole::kServer;
  join.timestamp = seat.wanted_rank;
  Check(scheduler->Send(join));
  std::vector<std::string> addresses;
  {
    std::unique_lock lock(mu);
    Check(Await(
        &lock, [this] { return id != 0; }, until));
    if (seat.role == door::SeatRole::kWorker) addresses = servers;
  }
  for (size_t rank = 0; rank < addresses.size(); ++rank) {
    const std::shared_ptr<Line> server = Dial(addresses[rank], until);
    Message hello = Control(kHello);
    hello.sender = id;
    Check(server->Send(hello));
    const std::lock_guard lock(mu);
    lines[IdOf(true, static_cast<int>(rank))] = server;
    threads.emplace_back([this, server] { Attend(server); });
  }
}

void Post::Impl::Close() {
  std::vector<std::shared_ptr<Line>> all;
  {
    const std::lock_guard lock(mu);
    ending = true;  // from now on nobody's going is a loss
    changed.notify_all();
    for (const auto& [node, line] : lines) all.push_back(line);
  }
  Message bye = Control(kBye);
  bye.sender = id;
  for (const auto& line : all) (void)line->Send(bye);
  std::vector<std::thread> last;
  {
    std::unique_lock lock(mu);
    // Whoever is cut off must have heard the good-bye: the scheduler waits for everybody's.
    const size_t others = id == kSchedulerId ? lines.size() : 0;
    changed.wait_for(lock, std::chrono::seconds(5),
                     [&] { return gone.size() >= others || !failed.ok(); });
  }
  acceptor.reset();  // no more threads from here on
  for (const auto& line : all) line->Shut();
  {
    const std::lock_guard lock(mu);
    last.swap(threads);
  }
  for (std::thread& thread : last) thread.join();
  const std::lock_guard lock(mu);
  lines.clear();
  gone.clear();
  servers.clear();
  newcomers.clear();
  undelivered.clear();
  watching = false;
  barrier_in.clear();
  barrier_passed.clear();
  id = 0;
  ending = starting = started = false;
  seated.reset();
  delete owner.exchange(nullptr);
}

}  // namespace shoal::ps::v1::lite
