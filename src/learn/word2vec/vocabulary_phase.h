// How the workers of a job come to one vocabulary: each counts its part of the text, the first
// merges the parts, all read the result. Only named blobs on the servers are used, no barriers, so
// that a worker that was lost and started again finds its way from wherever the others are.
#pragma once

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/text/vocabulary.h"
#include "learn/word2vec/worker.h"

namespace shoal::learn::word2vec {

// The number of threads of every worker: as the parameters say, else what the first worker's
// machine allows, for the cut of the text depends on it. Cancelled if setup.stop became true
// meanwhile.
Result<int64_t> AgreeOnThreads(const WorkerSetup& setup);

// params.threads ≥ 1. Cancelled if setup.stop became true meanwhile; FailedPrecondition if no word
// is left or workers see different files.
Result<data::Vocabulary> AgreeOnVocabulary(const WorkerSetup& setup, const data::Corpus& corpus);

}  // namespace shoal::learn::word2vec
