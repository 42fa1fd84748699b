// A worker of a training on sparse examples from its start to its end: read its examples, agree on
// the number of features, train with its threads, measure, save. The flow is in README.md.
//
// Called by job.cc inside `shoal learn worker`, and by tests with clients of their own.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "learn/coordination/trained_count.h"
#include "learn/data_locality/part_assignment.h"
#include "learn/sparse/exchange/exchange_meter.h"
#include "learn/sparse/exchange/part_summary.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/objective/assessment.h"
#include "learn/sparse/objective/label_scale.h"
#include "learn/sparse/objective/quality.h"
#include "learn/sparse/params.h"
#include "learn/task/task.h"
#include "ps/client/client.h"

namespace shoal::learn::sparse {

struct BaseModel;

// What columns and labels came to mean.
struct DataMeaning {
  std::optional<data::CsvSchema> columns;  // of csv
  Target target;
  const BaseModel* base = nullptr;  // the model that is continued; null: none; not owned
};

// May be empty.
struct HeldOutFiles {
  std::vector<std::string> test;
  std::vector<std::string> validation;
};

struct WorkerSetup {
  int index = 0;
  int workers = 1;
  int servers = 1;
  CommonParams params;
  std::string algorithm;                          // as model.json names it
  std::map<std::string, std::string> parameters;  // likewise: all of them, as text
  const Learner* learner = nullptr;               // not owned
  data::ExampleFormat format = data::ExampleFormat::kLibsvm;
  Normalization normalization = Normalization::kRows;  // set by RunWorker
  int64_t default_threads = 1;  // what this machine allows, where params.threads is 0
  std::vector<std::string> sources;
  DataCacheOptions data_cache;
  PartAssignment part;                      // set by RunWorker, as the next
  PartSummary share;                        // what this worker has of the data
  DataMeaning meaning;                      // likewise
  HeldOutFiles held_out;                    // read by worker 0
  std::filesystem::path output;             // used by worker 0
  bool checkpoints = false;                 // the job takes some, so states must reach the servers
  ps::Client* client = nullptr;             // not owned
  SharedBlobs* shared_blobs = nullptr;      // set by RunWorker
  const Reporter* reporter = nullptr;       // not owned
  const std::atomic<bool>* stop = nullptr;  // not owned; drain
  std::function<std::vector<int>()> ended;  // workers that have, as the coordinator says; or empty
  // How often a worker that waits for a slower one looks whether it shall stop.
  Duration look = std::chrono::milliseconds(200);
  // Set by the client's on_server_restart: bit s for server s (servers ≥ 64: bit 63).
  std::atomic<uint64_t>* restarted_servers = nullptr;  // not owned; may be null
};

struct WorkerOutcome {
  uint64_t examples = 0;  // trained by this worker in this life
  TrainedCount job;       // worker 0: of all workers in all lives
  double examples_per_second = 0;
  ExchangeCost exchange;    // of several workers
  double train_loss = 0;    // of the last epoch, each example before it was learnt from
  Quality held_out;         // worker 0; examples 0: there are none
  uint64_t best_epoch = 0;  // worker 0: of the model, where there is validation; from 1
  Quality validation;       // likewise: of that epoch
  // Worker 0: of the held-out examples, else of its own ones that are validated; examples 0: there
  // are none.
  Assessment assessment;
  bool drained = false;
  std::string digest;  // of the model; worker 0
};

// For waits that end when the others come: workers that are lost are not waited for, and the job's
// deadline is for those that are stuck. About ten years.
inline constexpr auto kNoTimeout = std::chrono::hours(24 * 365 * 10);

// How far a worker may run ahead of the slowest, in rounds.
inline constexpr uint32_t kStaleness = 2;

// Blocks until this worker has done its part (worker 0: until the model is saved).
Result<WorkerOutcome> RunWorker(const WorkerSetup& setup);

}  // namespace shoal::learn::sparse
