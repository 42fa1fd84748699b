// The command line of dmlc-submit as a job: `shoal submit-dmlc` has the same flags.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/import.h"

namespace shoal::importer {

struct DmlcFlag {
  std::string_view name;  // "num-workers"
  std::string_view doc;   // for --help
  std::string_view lost;  // what is lost with it: completes "--queue: …"; empty if it is kept
};

// In the order of --help; each takes one value; the last one counts when it is given often.
std::span<const DmlcFlag> DmlcFlags();

// `flags`: name → the values it was given, for those that were given; `command` is the program with
// its arguments, which runs as scheduler, server and worker alike. InvalidArgument names the flag.
Result<ImportedJob> ImportDmlcSubmit(const std::map<std::string, std::vector<std::string>>& flags,
                                     const std::vector<std::string>& command);

}  // namespace shoal::importer
