// A worker of a word2vec job from its start to its end: count words, agree on the vocabulary, train
// with its threads, save. The flow is drawn in docs/design/word2vec.md.
//
// Called by word2vec.cc inside `shoal learn worker`, and by tests with clients of their own.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "learn/coordination/trained_count.h"
#include "learn/data_locality/part_assignment.h"
#include "learn/task/task.h"
#include "learn/word2vec/params.h"
#include "ps/client/client.h"

namespace shoal::learn::word2vec {

struct WorkerSetup {
  int index = 0;
  int workers = 1;
  int servers = 1;
  bool server_inside = false;  // of this process
  Params params;
  int64_t default_threads = 1;  // what this machine allows, where params.threads is 0
  std::vector<std::string> sources;
  DataCacheOptions data_cache;
  PartAssignment part;                      // set by RunWorker
  std::filesystem::path output;             // used by worker 0
  std::filesystem::path scratch;            // an existing directory
  bool checkpoints = false;                 // the job takes some, so rows must reach the servers
  ps::Client* client = nullptr;             // not owned
  SharedBlobs* shared_blobs = nullptr;      // set by RunWorker
  const Reporter* reporter = nullptr;       // not owned
  const std::atomic<bool>* stop = nullptr;  // not owned; drain
  std::function<std::vector<int>()> ended;  // workers that have, as the coordinator says; or empty
  // Set by the client's on_server_restart: bit s for server s (servers ≥ 64: bit 63).
  std::atomic<uint64_t>* restarted_servers = nullptr;  // not owned; may be null
};

struct WorkerOutcome {
  uint64_t words = 0;           // of this worker, over all epochs
  double words_per_second = 0;  // of the whole job, training only; worker 0
  double loss = 0;              // of the whole job, last part; worker 0
  double exchanged_bytes = 0;   // rows and keys of all workers while they trained; worker 0
  double exchange_share = 0;    // of its threads' time that passed in exchanges; worker 0
  TrainedCount job;             // of all workers in all lives; worker 0
  bool drained = false;
  std::string digest;  // of vectors.bin; worker 0
};

// Blocks until this worker has done its part (worker 0: until the model is saved).
Result<WorkerOutcome> RunWorker(const WorkerSetup& setup);

}  // namespace shoal::learn::word2vec
