#include "net/event_loop.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <unordered_map>
#include <utility>

#include "base/file.h"

namespace shoal::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Anything that calls back later. Handlers hold it, so a callback may cancel itself.
struct Watch {
  virtual ~Watch() = default;
  virtual void Cancel() = 0;
  Loop::Callback fn;
  bool live = true;
};

struct TimerWatch final : Watch {
  explicit TimerWatch(asio::io_context& io) : timer(io) {}
  void Cancel() override { timer.cancel(); }
  asio::steady_timer timer;
};

struct DescriptorWatch final : Watch {
  explicit DescriptorWatch(asio::io_context& io) : descriptor(io) {}
  ~DescriptorWatch() override {
    if (descriptor.is_open()) descriptor.release();  // it is the caller's
  }
  void Cancel() override {
    if (descriptor.is_open()) descriptor.release();
    owned.Reset();
  }
  UniqueFd owned;  // a pidfd; declared first, so that it is closed after the release
  asio::posix::stream_descriptor descriptor;
};

struct SignalWatch final : Watch {
  SignalWatch(asio::io_context& io, int number) : signals(io, number) {}
  void Cancel() override { signals.cancel(); }
  asio::signal_set signals;
};

}  // namespace

struct Loop::Impl {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::unordered_map<Id, std::shared_ptr<Watch>> watches;
  Id next = 1;

  Id Add(std::shared_ptr<Watch> watch, Callback fn) {
    watch->fn = std::move(fn);
    watches.emplace(next, std::move(watch));
    return next++;
  }

  void Fire(Id id, const std::shared_ptr<Watch>& watch, bool once) {
    if (!watch->live) return;
    if (once) {
      watch->live = false;
      watches.erase(id);
    }
    watch->fn();
  }

  void Wait(Id id, std::shared_ptr<DescriptorWatch> watch, bool once) {
    auto& descriptor = watch->descriptor;
    descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                          [this, id, once, watch](error_code error) {
                            if (error) return;
                            Fire(id, watch, once);
                            if (watch->live && !once) Wait(id, watch, once);
                          });
  }

  void Wait(Id id, std::shared_ptr<SignalWatch> watch) {
    auto& signals = watch->signals;
    signals.async_wait([this, id, watch](error_code error, int) {
      if (error) return;
      Fire(id, watch, false);
      if (watch->live) Wait(id, watch);
    });
  }
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {}

Loop::~Loop() {
  for (auto& [id, watch] : impl_->watches) {
    watch->live = false;
    watch->Cancel();
  }
  impl_->watches.clear();
}

void Loop::Run() {
  impl_->io.run();
  impl_->io.restart();
}

bool Loop::RunUntil(const std::function<bool()>& done, Duration limit) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
  bool reached = done();
  while (!reached && std::chrono::steady_clock::now() < deadline) {
    if (impl_->io.stopped()) break;
    impl_->io.run_one_until(deadline);
    reached = done();
  }
  if (impl_->io.stopped()) impl_->io.restart();
  return reached;
}

void Loop::Stop() { impl_->io.stop(); }

void Loop::Post(Callback fn) { asio::post(impl_->io, std::move(fn)); }

Loop::Id Loop::After(Duration delay, Callback fn) {
  auto watch = std::make_shared<TimerWatch>(impl_->io);
  const Id id = impl_->Add(watch, std::move(fn));
  watch->timer.expires_after(std::max(delay, Duration::zero()));
  watch->timer.async_wait([impl = impl_.get(), id, watch](error_code error) {
    if (!error) impl->Fire(id, watch, true);
  });
  return id;
}

Result<Loop::Id> Loop::WatchReadable(int fd, Callback fn) {
  auto watch = std::make_shared<DescriptorWatch>(impl_->io);
  error_code error;
  watch->descriptor.assign(fd, error);
  if (error) {
    return InvalidArgument("descriptor " + std::to_string(fd) +
                           " cannot be waited for: " + error.message());
  }
  const Id id = impl_->Add(watch, std::move(fn));
  impl_->Wait(id, std::move(watch), false);
  return id;
}

Loop::Id Loop::WatchSignal(int signal, Callback fn) {
  auto watch = std::make_shared<SignalWatch>(impl_->io, signal);
  const Id id = impl_->Add(watch, std::move(fn));
  impl_->Wait(id, std::move(watch));
  return id;
}

Result<Loop::Id> Loop::WatchChild(pid_t pid, Callback fn) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    return ErrnoStatus(errno, "cannot watch process " + std::to_string(pid));
  }
  auto watch = std::make_shared<DescriptorWatch>(impl_->io);
  error_code error;
  watch->descriptor.assign(pidfd.get(), error);
  if (error)
    return Internal("cannot watch process " + std::to_string(pid) + ": " + error.message());
  watch->owned = std::move(pidfd);
  const Id id = impl_->Add(watch, std::move(fn));
  impl_->Wait(id, std::move(watch), true);
  return id;
}

void Loop::Cancel(Id id) {
  const auto found = impl_->watches.find(id);
  if (found == impl_->watches.end()) return;
  const std::shared_ptr<Watch> watch = std::move(found->second);
  impl_->watches.erase(found);
  watch->live = false;
  watch->Cancel();
}

asio::io_context& Loop::context() { return impl_->io; }

}  // namespace shoal::net
