// What programs call of shoal/lite/post.h.
#include <algorithm>

#include "door/environment.h"
#include "door/lite/post_impl.h"

namespace shoal::ps::v1::lite {

// ---- Customers --------------------------------------------------------------------------------

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

Post& Post::Get() {
  static Post* const post = new Post;  // lives for ever: exit callbacks come late
  return *post;
}

Post::Post() : impl_(std::make_unique<Impl>()) {}
Post::~Post() = default;

void Post::SetVariables(std::map<std::string, std::string> variables) {
  const std::lock_guard lock(impl_->mu);
  impl_->variables = std::move(variables);
  if (!impl_->starting) impl_->knows_seat = false;
}

void Post::Start(int customer, bool barrier) {
  impl_->CheckOwner();
  bool first = false;
  {
    std::unique_lock lock(impl_->mu);
    impl_->customers_in.insert(customer);
    first = !std::exchange(impl_->starting, true);
    if (!first) Check(impl_->Await(&lock, [this] { return impl_->started; }));
  }
  if (!first) return;
  impl_->owner = new door::OwnerProcess;
  impl_->Open();
  {
    const std::lock_guard lock(impl_->mu);
    impl_->started = true;
    impl_->changed.notify_all();
  }
  if (barrier) Barrier(customer, kSchedulerId + kServers + kWorkers);
}

void Post::Finalize(int customer, bool barrier) {
  impl_->CheckOwner();
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
  impl_->CheckOwner();
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

int Post::num_workers() const { return impl_->Where().workers; }
int Post::num_servers() const { return impl_->Where().servers; }
bool Post::is_worker() const { return impl_->Where().role == door::SeatRole::kWorker; }
bool Post::is_server() const { return impl_->Where().role == door::SeatRole::kServer; }
bool Post::is_scheduler() const { return impl_->Where().role == door::SeatRole::kScheduler; }
int Post::id() const { return impl_->id; }
int Post::rank() const { return std::max(0, (impl_->id - 8) / 2); }
std::vector<int> Post::IdsOf(int group) const { return impl_->Ids(group); }

void Post::Send(const Message& message) {
  impl_->CheckOwner();
  Message letter = message;
  letter.sender = impl_->id;
  if (letter.recver == impl_->id) return impl_->Deliver(std::move(letter));
  const std::shared_ptr<Line> line = impl_->LineTo(letter.recver);
  if (line == nullptr) Throw(Unavailable("there is no way to " + NameOf(letter.recver)));
  Check(line->Send(letter).With(NameOf(letter.recver)));
}

Customer::Customer(int app, int customer, Handler handler) : impl_(std::make_unique<Impl>()) {
  Post::Impl& post = *Post::Get().impl_;
  post.CheckOwner();
  impl_->app = app;
  impl_->customer = customer;
  impl_->handler = std::move(handler);
  impl_->post = &post;
  impl_->thread = std::thread([this] { impl_->Loop(); });
  std::deque<Post::Impl::Undelivered> waiting;
  {
    const std::lock_guard lock(post.mu);
    post.customers[{app, customer}] = impl_.get();
    impl_->failed = post.failed;
    waiting.swap(post.undelivered);
  }
  for (auto& one : waiting) post.Deliver(std::move(one.message), one.since);
}

// A forked child does not have its thread.
Customer::~Customer() {
  if (!impl_->owner.IsThisProcess()) {
    door::Abandon(std::move(impl_));
    return;
  }
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

bool Customer::IsOfThisProcess() const { return impl_->owner.IsThisProcess(); }
int Customer::app_id() const { return impl_->app; }
int Customer::customer_id() const { return impl_->customer; }

int Customer::NewRequest(int group) {
  impl_->CheckOwner();
  const auto expected = static_cast<int>(impl_->post->Ids(group).size());
  const std::lock_guard lock(impl_->mu);
  impl_->tracker.emplace_back(expected, 0);
  return static_cast<int>(impl_->tracker.size()) - 1;
}

void Customer::WaitRequest(int timestamp) {
  impl_->CheckOwner();
  std::unique_lock lock(impl_->mu);
  const auto at = static_cast<size_t>(timestamp);
  if (timestamp < 0 || at >= impl_->tracker.size())
    Throw(InvalidArgument(fmt::format("there is no request {}", timestamp)));
  const auto done = [&] { return impl_->tracker[at].second >= impl_->tracker[at].first; };
  impl_->changed.wait(lock, [&] { return done() || !impl_->failed.ok(); });
  if (!done()) Throw(impl_->failed);
}

int Customer::NumResponse(int timestamp) {
  impl_->CheckOwner();
  const std::lock_guard lock(impl_->mu);
  return impl_->tracker[static_cast<size_t>(timestamp)].second;
}

void Customer::AddResponse(int timestamp, int count) {
  impl_->CheckOwner();
  const std::lock_guard lock(impl_->mu);
  impl_->tracker[static_cast<size_t>(timestamp)].second += count;
  impl_->changed.notify_all();
}

}  // namespace shoal::ps::v1::lite
