// Messages about settings that an import drops.
#pragma once

#include <string>

#include "import/import.h"

namespace shoal::cli {

// Prints to standard error a sentence for each dropped setting that may affect programs on this
// engine; nothing for a native job file. PrintUnusedFields (load_job.h) covers fields that the
// engine ignores.
void PrintImportLosses(const importer::ImportedJob& imported, const std::string& engine);

}  // namespace shoal::cli
