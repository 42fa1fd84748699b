// A node's life in its job: joining, its connections, barriers, and its end.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/log.h"
#include "door/lite/post_impl.h"
#include "ps/socket.h"

namespace shoal::ps::v1::lite {
namespace {

constexpr auto kGather = std::chrono::seconds(300);

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

void Post::Impl::Deliver(Message message) {
  const std::lock_guard lock(mu);
  const auto found = customers.find({message.app, message.customer});
  if (found != customers.end()) return found->second->Accept(std::move(message));
  // Requests to a server name the worker's customer; ours is known by its app.
  const auto by_app = customers.lower_bound({message.app, INT32_MIN});
  if (message.request && by_app != customers.end() && by_app->first.first == message.app)
    return by_app->second->Accept(std::move(message));
  undelivered.push_back(std::move(message));
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
    if (ending) gone.insert(node);  // its good-bye may have gone down with the connection
    changed.notify_all();
  }
  if (!polite) {
    Fail(Unavailable(
        fmt::format("{} ({}) has gone away without Finalize", NameOf(node), line->name())));
  }
}

void Post::Impl::Accepting() {
  while (true) {
    pollfd ready{listener.get(), POLLIN, 0};
    if (::poll(&ready, 1, -1) < 0 && errno != EINTR) return;
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    {
      const std::lock_guard lock(mu);
      if (ending) return;
    }
    if (!fd.valid()) continue;
    StartThread([this, raw = fd.Release()] {
      auto line = Line::Accept(UniqueFd(raw), seat.token);
      if (!line.ok()) return LogWarning("refused {}", line.status().message());
      Attend(std::move(*line));
    });
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
    const std::lock_guard lock(mu);
    newcomers.push_back({line, message.push, message.timestamp, message.body});
    if (newcomers.size() != static_cast<size_t>(seat.servers + seat.workers) || id == 0) return;
  }
  Seated();
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

void Post::Impl::Open() {
  auto found = door::FindSeat(door::RealEnvironment());
  if (!found.ok()) Throw(found.status());
  seat = std::move(*found);
  if (seat.role != door::SeatRole::kWorker) {
    uint16_t bound = 0;
    auto listening = ps::ListenTcp(seat.host, seat.port, &bound);
    if (!listening.ok()) Throw(listening.status().With("listening for the other nodes"));
    listener = std::move(*listening);
    seat.port = bound;
    StartThread([this] { Accepting(); });
  }
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

void Post::Impl::Join() {
  const TimePoint until = RealClock::Get()->Now() + kGather;
  const auto dial = [&](const std::string& address) {
    while (true) {
      auto line = Line::Dial(address, seat.token, std::chrono::seconds(5));
      if (line.ok()) return std::shared_ptr<Line>(std::move(*line));
      const bool refused = line.status().code() == shoal::Code::kUnauthenticated;
      if (refused || RealClock::Get()->Now() > until) Throw(line.status().With("joining the job"));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it may not listen yet
    }
  };
  const std::shared_ptr<Line> scheduler = dial(seat.root);
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
    const std::shared_ptr<Line> server = dial(addresses[rank]);
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
  if (listener.valid()) ::shutdown(listener.get(), SHUT_RDWR);
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
  barrier_in.clear();
  barrier_passed.clear();
  listener.Reset();
  id = 0;
  ending = starting = started = false;
  delete owner.exchange(nullptr);
}

}  // namespace shoal::ps::v1::lite
