#include "ps/checkpoint/checkpoint_thread.h"

#include <fmt/format.h>

#include "base/mutex.h"

namespace shoal::ps {

Status CheckpointThread::Run(Task task, Answer answer) {
  const MutexLock lock(mu_);
  if (context_->stopped) return context_->StoppedStatus();
  if (busy_) {
    return FailedPrecondition(
        fmt::format("server {} still writes a checkpoint", context_->options.index));
  }
  task_ = std::move(task);
  answer_ = std::move(answer);
  busy_ = true;
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  wake_.notify_all();
  return Status::Ok();
}

void CheckpointThread::WhenIdle(std::function<void()> then) {
  {
    const MutexLock lock(mu_);
    if (busy_) return then_.push_back(std::move(then));
  }
  then();
}

void CheckpointThread::Stop() {
  std::thread thread;
  {
    const MutexLock lock(mu_);
    thread = std::move(thread_);
  }
  wake_.notify_all();
  if (thread.joinable()) thread.join();
}

void CheckpointThread::Loop() {
  for (;;) {
    Task task;
    Answer answer;
    {
      MutexLock lock(mu_);
      wake_.wait(lock, [this]() REQUIRES(mu_) { return context_->stopped || task_ != nullptr; });
      if (context_->stopped) return;
      task = std::move(task_);
      answer = std::move(answer_);
      task_ = nullptr;
    }
    const Result<std::string> done = task();
    Lane::Guard guard(context_->first_lane());
    std::vector<std::function<void()>> then;
    {
      const MutexLock lock(mu_);
      busy_ = false;
      then.swap(then_);
    }
    for (const auto& call : then) call();
    answer(done.status(), done.ok() ? std::string_view(*done) : std::string_view());
  }
}

}  // namespace shoal::ps
