// What a foreign job file loses, told to people.
#pragma once

#include "dialect/import/import.h"

namespace shoal::cli {

// On standard error, one sentence for each loss that programs may notice; nothing for a job file of
// our own. What depends on the engine is left to TellUnused (load_job.h).
void TellLosses(const dialect::Imported& imported);

}  // namespace shoal::cli
