// Which process an object belongs to. After fork() the child has copies of the parent's clients
// whose sockets and rings are shared with the parent and whose threads do not exist: nothing of
// them may be used (docs/adr/0150-client-belongs-to-its-process.md).
//
// Used by ps.cc and postoffice.cc at the head of every public call.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace shoal::bindings {

// Another number in every process of a family of forks; never 0. One load once it is known.
// Thread-safe, takes no lock.
uint64_t ThisProcess();

class OwnerProcess {
 public:
  // This process.
  OwnerProcess();
  // False in a child of fork().
  bool IsThisProcess() const { return process_ == ThisProcess(); }
  // FailedPrecondition in a child. `what` was made, and `instead` is to be done: parts of the
  // message.
  Status Check(std::string_view what, std::string_view instead) const {
    return IsThisProcess() ? Status::Ok() : Refusal(what, instead);
  }

 private:
  Status Refusal(std::string_view what, std::string_view instead) const;

  const uint64_t process_;
  const pid_t pid_;
};

// Lets an object of another process be, without running its destructor. (It stays reachable, so
// that leak checkers say nothing.)
void Abandon(void* object);
template <typename T>
void Abandon(std::unique_ptr<T> object) {
  Abandon(static_cast<void*>(object.release()));
}

// Records, as long as it lives, that this process has a connected worker with this index at a job's
// servers. A forked child must not connect with the same index: the servers would take it for a new
// life of the worker, and refuse what its parent sends.
class ConnectedWorker {
 public:
  // `job`: a hash of what tells one job's servers from another's. FailedPrecondition: another
  // living process that the same one was forked from is connected so.
  static Status Check(int index, uint64_t job);

  ConnectedWorker(int index, uint64_t job);
  ~ConnectedWorker();
  ConnectedWorker(const ConnectedWorker&) = delete;
  ConnectedWorker& operator=(const ConnectedWorker&) = delete;

 private:
  size_t slot_;
};

}  // namespace shoal::bindings
