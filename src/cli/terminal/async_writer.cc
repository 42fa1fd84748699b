#include "cli/terminal/async_writer.h"

#include <sys/stat.h>

#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/output_file.h"

namespace shoal::cli {

struct AsyncWriter::State {
  State(int to, bool file) : fd(to), at_once(file), stream(to) {}

  const int fd;
  const bool at_once;   // a regular file never blocks for long
  OutputStream stream;  // used by the thread; guarded by mu without one
  mutable Mutex mu;
  mutable CondVar changed;
  std::string next GUARDED_BY(mu);       // not written yet
  size_t writing GUARDED_BY(mu) = 0;     // bytes in the thread's current write
  bool started GUARDED_BY(mu) = false;   // the thread
  bool was_full GUARDED_BY(mu) = false;  // since the last call of on_room
  bool ended GUARDED_BY(mu) = false;     // the writer is being destroyed
  bool failed GUARDED_BY(mu) = false;
  Status status GUARDED_BY(mu);
  std::function<void()> on_room GUARDED_BY(mu);

  size_t queued() const REQUIRES(mu) { return next.size() + writing; }
};

namespace {

bool IsFile(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

AsyncWriter::AsyncWriter(int fd) : state_(std::make_shared<State>(fd, IsFile(fd))) {}

AsyncWriter::~AsyncWriter() {
  const MutexLock lock(state_->mu);
  state_->ended = true;
  state_->on_room = nullptr;
  state_->changed.notify_all();
}

int AsyncWriter::fd() const { return state_->fd; }

void AsyncWriter::Write(std::string bytes) {
  if (bytes.empty()) return;
  const MutexLock lock(state_->mu);
  if (state_->failed) return;
  if (state_->at_once) {
    state_->failed = !state_->stream.Write(bytes);
    state_->status = state_->stream.status();
    return;
  }
  state_->next.empty() ? state_->next.swap(bytes) : (void)state_->next.append(bytes);
  state_->was_full = state_->was_full || state_->queued() >= kHighWater;
  if (std::exchange(state_->started, true)) return state_->changed.notify_all();
  // Not joined: it may block in write as long as the reader does.
  std::thread([state = state_] {
    MutexLock held(state->mu);
    while (true) {
      state->changed.wait(
          held, [&]() REQUIRES(state->mu) { return !state->next.empty() || state->ended; });
      if (state->ended) return;
      const std::string now = std::exchange(state->next, {});
      state->writing = now.size();
      held.unlock();
      const bool written = state->stream.Write(now);
      held.lock();
      state->writing = 0;
      if (!written) {
        state->failed = true;
        state->status = state->stream.status();
        state->next.clear();
      }
      const bool room = state->was_full && state->queued() < kHighWater / 2;
      if (room) state->was_full = false;
      if (room && state->on_room) state->on_room();
      state->changed.notify_all();
    }
  }).detach();
}

size_t AsyncWriter::queued() const {
  const MutexLock lock(state_->mu);
  return state_->queued();
}

Status AsyncWriter::status() const {
  const MutexLock lock(state_->mu);
  return state_->status;
}

void AsyncWriter::OnRoom(std::function<void()> fn) {
  const MutexLock lock(state_->mu);
  state_->on_room = std::move(fn);
}

bool AsyncWriter::WaitUntilWritten(Duration limit) const {
  MutexLock lock(state_->mu);
  return state_->changed.wait_for(lock, limit,
                                  [&]() REQUIRES(state_->mu) { return state_->queued() == 0; });
}

}  // namespace shoal::cli
