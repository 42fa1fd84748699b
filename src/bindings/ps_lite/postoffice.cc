// The public functions of shoal/ps_lite_api/postoffice.h.
#include <algorithm>

#include "base/mutex.h"
#include "bindings/environment.h"
#include "bindings/ps_lite/postoffice_impl.h"

namespace shoal::ps::v1::lite {

// ---- Customers --------------------------------------------------------------------------------

void Customer::Impl::Loop() {
  while (true) {
    MutexLock lock(mu);
    changed.wait(lock, [this]() REQUIRES(mu) { return stop || !queue.empty(); });
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

Postoffice& Postoffice::Get() {
  static Postoffice* const post = new Postoffice;  // lives for ever: exit callbacks come late
  return *post;
}

Postoffice::Postoffice() : impl_(std::make_unique<Impl>()) {}
Postoffice::~Postoffice() = default;

void Postoffice::SetVariables(std::map<std::string, std::string> variables) {
  const MutexLock lock(impl_->mu);
  impl_->variables = std::move(variables);
  if (impl_->phase == Impl::Phase::kIdle) impl_->config_known = false;
}

void Postoffice::Start(int customer, bool barrier) {
  impl_->CheckOwner();
  bool first = false;
  {
    MutexLock lock(impl_->mu);
    impl_->customers_in.insert(customer);
    first = impl_->phase == Impl::Phase::kIdle;
    if (first) impl_->phase = Impl::Phase::kStarting;
    if (!first)
      Check(impl_->Await(
          &lock, [this]() REQUIRES(impl_->mu) { return impl_->phase >= Impl::Phase::kStarted; }));
  }
  if (!first) return;
  impl_->owner = new bindings::OwnerProcess;
  impl_->Open();
  {
    const MutexLock lock(impl_->mu);
    impl_->phase = Impl::Phase::kStarted;
    impl_->changed.notify_all();
  }
  if (barrier) Barrier(customer, kSchedulerId + kServers + kWorkers);
}

void Postoffice::Finalize(int customer, bool barrier) {
  impl_->CheckOwner();
  {
    // The last of several customers of this process does it.
    const MutexLock lock(impl_->mu);
    impl_->customers_in.erase(customer);
    if (!impl_->customers_in.empty()) return;
  }
  if (barrier) Barrier(customer, kSchedulerId + kServers + kWorkers);
  impl_->Close();
  if (impl_->exit_callback) impl_->exit_callback();
}

void Postoffice::RegisterExitCallback(std::function<void()> callback) {
  impl_->exit_callback = std::move(callback);
}

void Postoffice::Barrier(int /*customer*/, int group) {
  impl_->CheckOwner();
  if (IdsOf(group).size() <= 1) return;
  uint64_t passed = 0;
  std::shared_ptr<Connection> scheduler;
  {
    const MutexLock lock(impl_->mu);
    passed = impl_->barriers[group].passed;
    if (impl_->id != kSchedulerId) scheduler = impl_->connections[kSchedulerId];
  }
  Message enter = Control(kBarrier);
  enter.customer = group;
  if (scheduler != nullptr) {
    Check(scheduler->Send(enter));
  } else {
    impl_->CountBarrier(group);
  }
  MutexLock lock(impl_->mu);
  Check(impl_->Await(&lock,
                     [&]() REQUIRES(impl_->mu) { return impl_->barriers[group].passed > passed; }));
}

int Postoffice::num_workers() const { return impl_->Config().workers; }
int Postoffice::num_servers() const { return impl_->Config().servers; }
bool Postoffice::is_worker() const { return impl_->Config().role == bindings::NodeRole::kWorker; }
bool Postoffice::is_server() const { return impl_->Config().role == bindings::NodeRole::kServer; }
bool Postoffice::is_scheduler() const {
  return impl_->Config().role == bindings::NodeRole::kScheduler;
}
int Postoffice::id() const { return impl_->id; }
int Postoffice::rank() const { return std::max(0, (impl_->id - 8) / 2); }
std::vector<int> Postoffice::IdsOf(int group) const { return impl_->Ids(group); }

void Postoffice::Send(const Message& message) {
  impl_->CheckOwner();
  Message outgoing = message;
  outgoing.sender = impl_->id;
  if (outgoing.recver == impl_->id) return impl_->Deliver(std::move(outgoing));
  const std::shared_ptr<Connection> connection = impl_->ConnectionTo(outgoing.recver);
  if (connection == nullptr)
    Throw(Unavailable("no connection leads to " + NameOf(outgoing.recver)));
  Check(connection->Send(outgoing).With(NameOf(outgoing.recver)));
}

Customer::Customer(int app, int customer, Handler handler) : impl_(std::make_unique<Impl>()) {
  Postoffice::Impl& post = *Postoffice::Get().impl_;
  post.CheckOwner();
  impl_->app = app;
  impl_->customer = customer;
  impl_->handler = std::move(handler);
  impl_->post = &post;
  impl_->thread = std::thread([this] { impl_->Loop(); });
  std::deque<Postoffice::Impl::Undelivered> waiting;
  {
    const MutexLock lock(post.mu);
    post.customers[{app, customer}] = impl_.get();
    impl_->failed = post.failed;
    waiting.swap(post.undelivered);
  }
  for (auto& one : waiting) post.Deliver(std::move(one.message), one.since);
}

// A forked child does not have its thread.
Customer::~Customer() {
  if (!impl_->owner.IsThisProcess()) {
    bindings::Abandon(std::move(impl_));
    return;
  }
  {
    const MutexLock lock(impl_->post->mu);
    impl_->post->customers.erase({impl_->app, impl_->customer});
  }
  {
    const MutexLock lock(impl_->mu);
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
  const MutexLock lock(impl_->mu);
  impl_->tracker.emplace_back(expected, 0);
  return static_cast<int>(impl_->tracker.size()) - 1;
}

void Customer::WaitRequest(int timestamp) {
  impl_->CheckOwner();
  MutexLock lock(impl_->mu);
  const auto at = static_cast<size_t>(timestamp);
  if (timestamp < 0 || at >= impl_->tracker.size())
    Throw(InvalidArgument(fmt::format("there is no request {}", timestamp)));
  const auto done = [&]() REQUIRES(impl_->mu) {
    return impl_->tracker[at].second >= impl_->tracker[at].first;
  };
  impl_->changed.wait(lock, [&]() REQUIRES(impl_->mu) { return done() || !impl_->failed.ok(); });
  if (!done()) Throw(impl_->failed);
}

int Customer::NumResponse(int timestamp) {
  impl_->CheckOwner();
  const MutexLock lock(impl_->mu);
  return impl_->tracker[static_cast<size_t>(timestamp)].second;
}

void Customer::AddResponse(int timestamp, int count) {
  impl_->CheckOwner();
  const MutexLock lock(impl_->mu);
  impl_->tracker[static_cast<size_t>(timestamp)].second += count;
  impl_->changed.notify_all();
}

}  // namespace shoal::ps::v1::lite
