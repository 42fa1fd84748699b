// What the workers of a training tell each other before they train: which part of the data each of
// them has read, and how much it found there. Their parts together must be the whole data, once,
// and all must have seen the same files.
//
// Told through a named blob a worker, "share/INDEX", which is in every checkpoint.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/examples/column_scaling.h"

namespace shoal::learn::sparse {

struct WorkerSetup;

// How much of what there is: all features and fields are below.
struct FeatureExtent {
  uint64_t features = 0;
  uint32_t fields = 0;  // 0 where they are not asked for
  bool operator==(const FeatureExtent&) const = default;
};

struct PartSummary {
  uint64_t corpus = 0;  // data::Corpus::fingerprint
  uint64_t files = 0;   // in the corpus
  uint64_t part = 0;    // of `parts`, as many as there are workers
  uint64_t parts = 1;
  uint64_t blocks = 1;                   // data::Division
  std::vector<data::ShardRange> ranges;  // of the part, in order
  uint64_t examples = 0;
  FeatureExtent extent;
  std::vector<data::ColumnSummary> columns = {};  // of csv with raw columns, in the file's order
  std::vector<std::string> classes = {};          // ExampleSet::classes of all shards
  std::vector<uint64_t> class_counts = {};        // examples of each, or of labels 0 and 1
  data::ColumnSummary labels = {};                // that are numbers
  data::ColumnSummary weights = {};               // of examples that have some
  data::Division division() const { return {parts, blocks}; }
  bool operator==(const PartSummary&) const = default;
};

// What all workers have together.
struct DatasetSummary {
  FeatureExtent extent;
  std::vector<uint64_t> examples;            // by worker
  std::vector<data::ColumnSummary> columns;  // as PartSummary's
  std::vector<std::string> classes;          // likewise; may repeat
  std::vector<uint64_t> class_counts;        // of each of `classes`
  data::ColumnSummary labels;
  data::ColumnSummary weights;
  uint64_t total() const { return std::accumulate(examples.begin(), examples.end(), uint64_t{0}); }
};

std::string EncodePartSummary(const PartSummary& share);
// DataLoss if it is anything else; `name` is the blob's.
Result<PartSummary> DecodePartSummary(std::string_view bytes, std::string_view name);

// FailedPrecondition unless the shares, by worker, are of the same files and make up all of them.
Status CheckPartSummaries(std::span<const PartSummary> shares);

// How a training by several workers divides the data: as those have that have begun with it, else
// by DivisionFor (dataset.h). Errors of the client.
Result<data::Division> AgreedDivision(const WorkerSetup& setup, const data::Corpus& corpus);

// Tells the servers setup.share; setup.shared_blobs tells one that comes back empty again.
// Nothing for a worker alone without checkpoints.
Status PublishPartSummary(const WorkerSetup& setup);

// Waits until all workers have announced theirs. Errors as CheckPartSummaries; Cancelled when the
// worker is to stop; FailedPrecondition if a worker has ended without a word, or if this worker
// goes on from an earlier life (`resumed`) that had another share.
Result<DatasetSummary> CollectPartSummaries(const WorkerSetup& setup, bool resumed);

}  // namespace shoal::learn::sparse
