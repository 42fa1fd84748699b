// What the workers of a job have agreed on before they train (who reads which part of the data, how
// many threads each has, the vocabulary), as named blobs on the first server.
//
// A server that comes back without a checkpoint has forgotten them, and a worker that is still
// looking for one, or was started again, would wait for ever for those that have moved on. So each
// worker keeps what it has learnt and tells the servers again whenever one came back, from a thread
// of its own: its other threads may be computing, or wait in a barrier for the very worker that is
// looking. agreements_model_test.cc explores the rule.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "ps/client/client.h"

namespace shoal::learn {

// Thread-safe.
class SharedBlobs {
 public:
  // The client is not owned, and must outlive this.
  explicit SharedBlobs(ps::Client* client);
  ~SharedBlobs();
  SharedBlobs(const SharedBlobs&) = delete;
  SharedBlobs& operator=(const SharedBlobs&) = delete;

  // What the servers know under this name, which is kept from now on. NotFound: nobody has told.
  Result<std::string> Read(const std::string& name);
  // Tells the servers, and keeps it.
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
  std::mutex mu_;
  std::condition_variable stopped_;
  bool stop_ = false;                  // guarded by mu_
  std::map<std::string, Blob> blobs_;  // guarded by mu_
  std::thread watch_;
};

// Who decides what nobody knows yet: the first worker that has not ended.
bool DecidesForAll(int worker, const std::vector<int>& ended);
// Whether every worker that has not ended has its blob, `prefix` and its number, among `names`:
// none of them then knows what is to be decided, for one that does tells it instead.
bool AllHaveAsked(const std::string& prefix, const std::vector<std::string>& names, int workers,
                  const std::vector<int>& ended);

}  // namespace shoal::learn
