// Locations of a job's fields in its file. Checks after the parser (of an algorithm, of an engine)
// report errors with them, and relative paths are resolved from the place where they were written.
// Filled in by ParseJob, used by src/cli.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/text/errors.h"

namespace shoal::job {

// Contains only fields that the file or --set gives. Empty for a job that does not come from a
// file.
struct FieldLocations {
  std::map<std::string, SourceLocation> at;  // path, such as "roles.worker.replicas" → location
  std::vector<std::string> set;              // the --set arguments as shown in messages

  bool Has(const std::string& path) const { return at.contains(path); }
  // Location of the field, or of the innermost enclosing section that was given; the beginning of
  // the file if there is none.
  SourceLocation Of(const std::string& path) const;
  // "job.yaml:3:5: " or "--set outputs.model=x: ", the beginning of a message; empty without
  // locations.
  std::string Prefix(const std::string& file, const std::string& path) const;
};

}  // namespace shoal::job
