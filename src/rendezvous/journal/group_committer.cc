#include "rendezvous/journal/group_committer.h"

#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/fault_injection.h"
#include "base/mutex.h"

namespace shoal::rendezvous {
namespace {

Status SyncAll(const std::vector<int>& fds) {
  TRY(FaultPoint("journal.sync"));
  for (const int fd : fds) {
    if (::fdatasync(fd) != 0) return ErrnoStatus(errno, "cannot sync the journal or a log");
  }
  return Status::Ok();
}

// One worker thread, started by the first Sync. The loop's thread hands it descriptors under mu_
// and gets `done` through Loop::Post; after the destructor has begun `done` is not called any more.
class ThreadGroupCommitter final : public GroupCommitter {
 public:
  explicit ThreadGroupCommitter(net::Loop* loop) : loop_(loop) {}

  ~ThreadGroupCommitter() override {
    *alive_ = false;
    {
      const MutexLock lock(mu_);
      stop_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void Sync(std::vector<int> fds, std::function<void(Status)> done) override {
    ++syncs_;
    done_ = std::move(done);
    {
      const MutexLock lock(mu_);
      work_ = std::move(fds);
      waiting_ = true;
    }
    if (thread_.joinable()) {
      wake_.notify_one();
    } else {
      thread_ = std::thread([this] { Serve(); });
    }
  }

  int64_t syncs() const override { return syncs_; }

 private:
  void Serve() {
    for (;;) {
      MutexLock lock(mu_);
      wake_.wait(lock, [this]() REQUIRES(mu_) { return waiting_ || stop_; });
      if (stop_) return;
      waiting_ = false;
      const std::vector<int> fds = std::move(work_);
      lock.unlock();
      loop_->Post([this, alive = alive_, status = SyncAll(fds)] {
        if (!*alive) return;
        std::exchange(done_, nullptr)(status);
      });
    }
  }

  net::Loop* const loop_;
  // Owned by the loop's thread.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::function<void(Status)> done_;
  int64_t syncs_ = 0;
  std::thread thread_;
  Mutex mu_;
  CondVar wake_;
  std::vector<int> work_ GUARDED_BY(mu_);
  bool waiting_ GUARDED_BY(mu_) = false;
  bool stop_ GUARDED_BY(mu_) = false;
};

}  // namespace

std::unique_ptr<GroupCommitter> GroupCommitter::Make(net::Loop* loop) {
  return std::make_unique<ThreadGroupCommitter>(loop);
}

}  // namespace shoal::rendezvous
