// Imports the command line of dmlc-submit and of MXNet's tools/launch.py, which calls it; `shoal
// submit-dmlc` has the flags of both.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/import.h"

namespace shoal::importer {

struct DmlcFlag {
  std::string_view name;  // "num-workers"; "n" for -n
  std::string_view doc;   // for --help
  std::string_view lost;  // why it is ignored, completes "--queue: …"; empty if honoured
};

// All flags in the order of --help. Each takes one value; the last occurrence counts.
std::span<const DmlcFlag> DmlcFlags();

// Converts a command line to a job. `flags` maps each given flag to its values; `command` is the
// program with its arguments, which runs as scheduler, server and worker. InvalidArgument names the
// flag.
Result<ImportedJob> ImportDmlcSubmit(const std::map<std::string, std::vector<std::string>>& flags,
                                     const std::vector<std::string>& command);

}  // namespace shoal::importer
