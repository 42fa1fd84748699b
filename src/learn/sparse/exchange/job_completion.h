// The end of a training of several workers: they wait for each other, and the first knows what all
// have trained. Called by worker.cc.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "base/status.h"
#include "learn/sparse/position.h"

namespace shoal::learn::sparse {

struct DatasetSummary;
struct WorkerSetup;

// What all workers have trained, as worker 0 hears it from the servers. A worker that was told to
// end early comes again, and is waited for; one that ended for good without its part is an error.
class JobProgress {
 public:
  // `setup` outlives it.
  JobProgress(const WorkerSetup& setup, const DatasetSummary& all);

  uint64_t trained() const {
    return std::accumulate(trained_.begin(), trained_.end(), uint64_t{0});
  }
  // False as long as a worker has not told that it has trained all of its part.
  Result<bool> Complete();
  // Asks about the workers that have not trained all of their part.
  Status ReadProgress();

 private:
  // A server that came back may know less than was heard before.
  Result<uint64_t> ReadWorkerProgress(int worker, uint64_t before) const;

  const WorkerSetup& setup_;
  const uint64_t epochs_;
  const std::vector<uint64_t> examples_;  // of one pass, by worker
  std::vector<uint64_t> trained_;
};

// Until all workers' changes are with the servers, or, where the job is to stop, for a while. The
// first worker then knows what all have trained; the others stay until it does.
Status AwaitOthers(const WorkerSetup& setup, bool drained, const std::vector<Position>& at,
                   JobProgress* all);

}  // namespace shoal::learn::sparse
