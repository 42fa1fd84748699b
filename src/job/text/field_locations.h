// Where the fields of a job stood in its file, for checks that come after the parser (an
// algorithm's, an engine's) and for paths, which are seen from where they were written. Made by
// ParseJob, used by src/cli.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/text/errors.h"

namespace shoal::job {

// Only what was given. None for a job that does not come from a file.
struct FieldLocations {
  std::map<std::string, SourceLocation> at;  // "roles.worker.replicas" → where
  std::vector<std::string> set;              // the --set arguments as messages show them

  bool Has(const std::string& path) const { return at.contains(path); }
  // Of the field, or of the innermost section around it that was given; the file's beginning if
  // there is none.
  SourceLocation Of(const std::string& path) const;
  // "job.yaml:3:5: ", or "--set outputs.model=x: "; empty without places.
  std::string Prefix(const std::string& file, const std::string& path) const;
};

}  // namespace shoal::job
