// What a foreign job file loses, told to people.
#pragma once

#include <string>

#include "import/import.h"

namespace shoal::cli {

// On standard error, one sentence for each loss that programs on this engine may notice; nothing
// for a job file of our own. What the engine does nothing with is told by PrintUnusedFields
// (load_job.h).
void PrintImportLosses(const importer::ImportedJob& imported, const std::string& engine);

}  // namespace shoal::cli
