// How the workers of a job agree on one vocabulary: each counts its part of the text, the first
// merges the counts, all read the result. Uses named blobs on the servers and no barriers, so that
// a restarted worker can join at any stage.
#pragma once

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/text/vocabulary.h"
#include "learn/word2vec/worker.h"

namespace shoal::learn::word2vec {

// The number of threads of every worker: the parameter, else the default of the first worker's
// machine, because the shards of the text depend on it. Cancelled if setup.stop becomes true.
Result<int64_t> AgreeOnThreads(const WorkerSetup& setup);

// Counts, merges and reads the vocabulary; params.threads must be ≥ 1. Cancelled if setup.stop
// becomes true; FailedPrecondition if no word is left, or workers see different files.
Result<data::Vocabulary> AgreeOnVocabulary(const WorkerSetup& setup, const data::Corpus& corpus);

}  // namespace shoal::learn::word2vec
