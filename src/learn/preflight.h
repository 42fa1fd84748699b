// Checks before a worker trains, or before a suspended job continues.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "job/spec/job.h"
#include "learn/algorithm.h"
#include "ps/client/client.h"

namespace shoal::learn {

// Checks before worker `index` trains that the model can be saved to `output`
// (model::CheckModelOutput). A worker that continues from a saved position is never refused because
// of a file that appeared since, as its training would be lost: the model is then saved beside that
// file, or elsewhere.
Status CheckOutput(ps::Client& client, int index, const std::filesystem::path& output);

// Checks a job that continues, and was valid at its start: with kLocal its data files must be
// readable. OK for jobs of other frameworks.
Status CheckDataFiles(const job::Job& job, DataLocation data);

}  // namespace shoal::learn
