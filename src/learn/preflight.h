// What is checked before a worker trains, or a suspended job goes on.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "job/spec/job.h"
#include "learn/algorithm.h"
#include "ps/client/client.h"

namespace shoal::learn {

// Before worker `index` trains: whether the model can be saved to `output`
// (model::CheckModelOutput). One that goes on from a saved position is never refused: what it has
// trained would be lost for a file that somebody has put there since. The model is then saved
// beside that file, or elsewhere.
Status CheckOutput(ps::Client& client, int index, const std::filesystem::path& output);

// Of a job that is to go on, which was valid when it began: whether its data files, if they are
// here, can be read. OK for jobs of other frameworks.
Status CheckDataFiles(const job::Job& job, DataLocation data);

}  // namespace shoal::learn
