// What a foreign job file loses, told to people.
#pragma once

#include "dialect/import/import.h"

namespace shoal::cli {

// On standard error, one sentence for each loss that programs may notice; nothing for a job file of
// our own.
void TellLosses(const dialect::Imported& imported);

}  // namespace shoal::cli
