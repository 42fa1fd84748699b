// Decisions that the workers of a job share before they train (which worker reads which part of the
// data, the number of threads, the vocabulary), as named blobs on the first server.
//
// A server that restarts without a checkpoint has lost them, and a worker that still needs one
// would wait forever for workers that have moved on. Each worker therefore keeps the blobs it has
// read or published and publishes them again when a server has restarted. That happens in a thread
// of its own, because its other threads may be computing, or waiting in a barrier for the worker
// that needs the blob. shared_blobs_model_test.cc explores the protocol exhaustively.
#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "ps/client/client.h"

namespace shoal::learn {

// Reads and publishes named blobs and republishes them to restarted servers. Thread-safe. Owns a
// thread, which the destructor joins.
class SharedBlobs {
 public:
  // `client` is not owned and must outlive this object.
  explicit SharedBlobs(ps::Client* client);
  ~SharedBlobs();
  SharedBlobs(const SharedBlobs&) = delete;
  SharedBlobs& operator=(const SharedBlobs&) = delete;

  // Reads a blob and keeps it for republishing. NotFound if it has not been published.
  Result<std::string> Read(const std::string& name);
  // Publishes a blob and keeps it for republishing.
  Status Publish(const std::string& name, const std::string& bytes);

 private:
  struct Blob {
    std::string bytes;
    int64_t published_at =
        0;  // the client's server_restarts() before the servers were known to have it
  };
  void Remember(const std::string& name, std::string bytes, int64_t published_at);
  void WatchRestarts();
  void Republish();

  ps::Client* const client_;
  Mutex mu_;
  CondVar stopped_;
  bool stop_ GUARDED_BY(mu_) = false;
  std::map<std::string, Blob> blobs_ GUARDED_BY(mu_);
  std::thread watch_;
};

// True if `worker` has to make a decision that has not been made: it is the first worker that has
// not ended.
bool DecidesForAll(int worker, const std::vector<int>& ended);
// True if every worker that has not ended has a blob named `prefix` and its number among `names`.
// Then none of them knows the decision, because a worker that knows it publishes it instead of
// asking.
bool AllHaveAsked(const std::string& prefix, const std::vector<std::string>& names, int workers,
                  const std::vector<int>& ended);

}  // namespace shoal::learn
