// A node of a ps-lite job. The scheduler knows everybody and relays what has no shorter way;
// workers have a connection to every server. Each connection has a thread that receives.
#include <shoal/lite/post.h>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/bytes.h"
#include "base/log.h"
#include "door/convert.h"
#include "door/lite/line.h"
#include "door/lite/seat.h"
#include "ps/socket.h"

namespace shoal::ps::v1::lite {
namespace {

using door::Line;
using door::Seat;

constexpr auto kGather = std::chrono::seconds(300);
constexpr int kControl = -1;  // Message::app of what nodes say to each other

enum Said : int { kJoin = 1, kWelcome, kHello, kBarrier, kPassed, kBye, kLost };

[[noreturn]] void Throw(const shoal::Status& status) { throw Error(door::Public(status)); }
void Check(const shoal::Status& status) {
  if (!status.ok()) Throw(status);
}

Message Control(int what, std::string body = {}) {
  Message message;
  message.app = kControl;
  message.head = what;
  message.body = std::move(body);
  return message;
}

int IdOf(bool server, int rank) { return (server ? 8 : 9) + 2 * rank; }

std::string NameOf(int id) {
  if (id == kSchedulerId) return "the scheduler";
  return fmt::format("{} {}", id % 2 == 0 ? "server" : "worker", (id - 8) / 2);
}

}  // namespace

// ---- Customers --------------------------------------------------------------------------------

struct Customer::Impl {
  int app = 0;
  int customer = 0;
  Handler handler;
  Post::Impl* post = nullptr;
  std::mutex mu;
  std::condition_variable changed;
  std::deque<Message> queue;                 // guarded by mu
  std::vector<std::pair<int, int>> tracker;  // guarded by mu, by timestamp: expected, answered
  bool stop = false;                         // guarded by mu
  shoal::Status failed;                      // guarded by mu
  std::thread thread;

  void Loop();
  void Accept(Message message) {
    const std::lock_guard lock(mu);
    queue.push_back(std::move(message));
    changed.notify_all();
  }
  void Fail(const shoal::Status& why) {
    const std::lock_guard lock(mu);
    if (failed.ok()) failed = why;
    changed.notify_all();
  }
};

void Customer::Impl::Loop() {
  while (true) {
    std::unique_lock lock(mu);
    changed.wait(lock, [this] { return stop || !queue.empty(); });
    if (stop) return;
    const Message message = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    handler(message);
    if (message.request) continue;
    lock.lock();
    const auto at = static_cast<size_t>(message.timestamp);
    if (message.timestamp >= 0 && at < tracker.size()) ++tracker[at].second;
    changed.notify_all();
  }
}

// ---- The node ---------------------------------------------------------------------------------

struct Post::Impl {
  std::mutex mu;
  std::condition_variable changed;
  Seat seat;                                   // constant while started
  bool starting = false, started = false;      // guarded by mu
  std::set<int> customers_in;                  // guarded by mu: that have started
  int id = 0;                                  // guarded by mu; constant once welcomed
  std::map<int, std::shared_ptr<Line>> lines;  // guarded by mu, by node
  std::set<int> gone;                          // guarded by mu: have said good-bye
  std::vector<std::string> servers;            // guarded by mu: addresses by rank
  std::map<std::pair<int, int>, Customer::Impl*> customers;  // guarded by mu
  std::deque<Message> undelivered;                           // guarded by mu
  std::map<int, int> barrier_in;                             // guarded by mu; scheduler: by group
  std::map<int, uint64_t> barrier_passed;                    // guarded by mu, by group
  struct Newcomer {
    std::shared_ptr<Line> line;
    bool server;
    int wanted;
    std::string address;
  };
  std::vector<Newcomer> newcomers;  // guarded by mu; scheduler
  shoal::Status failed;             // guarded by mu
  bool ending = false;              // guarded by mu
  bool failing = false;             // guarded by mu: `failed` is about to be set
  UniqueFd listener;
  std::vector<std::thread> threads;  // guarded by mu until the end
  std::function<void()> exit_callback;

  void Open();
  void Close();
  void Join();
  void Accepting();
  void Attend(std::shared_ptr<Line> line);
  void Take(const std::shared_ptr<Line>& line, Message message);
  void TakeControl(const std::shared_ptr<Line>& line, const Message& message);
  void TakeJoin(const std::shared_ptr<Line>& line, const Message& message);
  void TakeWelcome(const Message& message);
  void Seated();
  void CountBarrier(int group);
  void Fail(const shoal::Status& why);
  void Deliver(Message message);
  shoal::Status Await(std::unique_lock<std::mutex>* lock, const std::function<bool()>& done,
                      std::optional<TimePoint> until = {});
  std::shared_ptr<Line> LineTo(int node);
  std::vector<int> Ids(int group) const;
  void StartThread(std::function<void()> run) {
    const std::lock_guard lock(mu);
    threads.emplace_back(std::move(run));
  }
};

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
}

// ---- What programs call -----------------------------------------------------------------------

Post& Post::Get() {
  static Post* const post = new Post;  // lives for ever: exit callbacks come late
  return *post;
}

Post::Post() : impl_(std::make_unique<Impl>()) {}
Post::~Post() = default;

void Post::Start(int customer, bool barrier) {
  bool first = false;
  {
    std::unique_lock lock(impl_->mu);
    impl_->customers_in.insert(customer);
    first = !std::exchange(impl_->starting, true);
    if (!first) Check(impl_->Await(&lock, [this] { return impl_->started; }));
  }
  if (!first) return;
  impl_->Open();
  {
    const std::lock_guard lock(impl_->mu);
    impl_->started = true;
    impl_->changed.notify_all();
  }
  if (barrier) Barrier(customer, kSchedulerId + kServers + kWorkers);
}

void Post::Finalize(int customer, bool barrier) {
  {
    // The last of several customers of this process does it.
    const std::lock_guard lock(impl_->mu);
    impl_->customers_in.erase(customer);
    if (!impl_->customers_in.empty()) return;
  }
  if (barrier) Barrier(customer, kSchedulerId + kServers + kWorkers);
  impl_->Close();
  if (impl_->exit_callback) impl_->exit_callback();
}

void Post::RegisterExitCallback(std::function<void()> callback) {
  impl_->exit_callback = std::move(callback);
}

void Post::Barrier(int /*customer*/, int group) {
  if (IdsOf(group).size() <= 1) return;
  uint64_t passed = 0;
  std::shared_ptr<Line> scheduler;
  {
    const std::lock_guard lock(impl_->mu);
    passed = impl_->barrier_passed[group];
    if (impl_->id != kSchedulerId) scheduler = impl_->lines[kSchedulerId];
  }
  Message enter = Control(kBarrier);
  enter.customer = group;
  if (scheduler != nullptr) {
    Check(scheduler->Send(enter));
  } else {
    impl_->CountBarrier(group);
  }
  std::unique_lock lock(impl_->mu);
  Check(impl_->Await(&lock, [&] { return impl_->barrier_passed[group] > passed; }));
}

int Post::num_workers() const { return impl_->seat.workers; }
int Post::num_servers() const { return impl_->seat.servers; }
bool Post::is_worker() const { return impl_->seat.role == door::SeatRole::kWorker; }
bool Post::is_server() const { return impl_->seat.role == door::SeatRole::kServer; }
bool Post::is_scheduler() const { return impl_->seat.role == door::SeatRole::kScheduler; }
int Post::id() const { return impl_->id; }
int Post::rank() const { return std::max(0, (impl_->id - 8) / 2); }
std::vector<int> Post::IdsOf(int group) const { return impl_->Ids(group); }

void Post::Send(const Message& message) {
  Message letter = message;
  letter.sender = impl_->id;
  if (letter.recver == impl_->id) return impl_->Deliver(std::move(letter));
  const std::shared_ptr<Line> line = impl_->LineTo(letter.recver);
  if (line == nullptr) Throw(Unavailable("there is no way to " + NameOf(letter.recver)));
  Check(line->Send(letter).With(NameOf(letter.recver)));
}

Customer::Customer(int app, int customer, Handler handler) : impl_(std::make_unique<Impl>()) {
  Post::Impl& post = *Post::Get().impl_;
  impl_->app = app;
  impl_->customer = customer;
  impl_->handler = std::move(handler);
  impl_->post = &post;
  impl_->thread = std::thread([this] { impl_->Loop(); });
  std::deque<Message> waiting;
  {
    const std::lock_guard lock(post.mu);
    post.customers[{app, customer}] = impl_.get();
    impl_->failed = post.failed;
    waiting.swap(post.undelivered);
  }
  for (Message& message : waiting) post.Deliver(std::move(message));
}

Customer::~Customer() {
  {
    const std::lock_guard lock(impl_->post->mu);
    impl_->post->customers.erase({impl_->app, impl_->customer});
  }
  {
    const std::lock_guard lock(impl_->mu);
    impl_->stop = true;
    impl_->changed.notify_all();
  }
  impl_->thread.join();
}

int Customer::app_id() const { return impl_->app; }
int Customer::customer_id() const { return impl_->customer; }

int Customer::NewRequest(int group) {
  const auto expected = static_cast<int>(impl_->post->Ids(group).size());
  const std::lock_guard lock(impl_->mu);
  impl_->tracker.emplace_back(expected, 0);
  return static_cast<int>(impl_->tracker.size()) - 1;
}

void Customer::WaitRequest(int timestamp) {
  std::unique_lock lock(impl_->mu);
  const auto at = static_cast<size_t>(timestamp);
  if (timestamp < 0 || at >= impl_->tracker.size())
    Throw(InvalidArgument(fmt::format("there is no request {}", timestamp)));
  const auto done = [&] { return impl_->tracker[at].second >= impl_->tracker[at].first; };
  impl_->changed.wait(lock, [&] { return done() || !impl_->failed.ok(); });
  if (!done()) Throw(impl_->failed);
}

int Customer::NumResponse(int timestamp) {
  const std::lock_guard lock(impl_->mu);
  return impl_->tracker[static_cast<size_t>(timestamp)].second;
}

void Customer::AddResponse(int timestamp, int count) {
  const std::lock_guard lock(impl_->mu);
  impl_->tracker[static_cast<size_t>(timestamp)].second += count;
  impl_->changed.notify_all();
}

}  // namespace shoal::ps::v1::lite
