// From the text of a job file (YAML, docs/job-file.md) to a validated Job.
//
// First station of every job that comes from a file; `shoal run`, `plan` and `submit` call it. The
// fields, their types, ranges, defaults and sentences stand in one table (fields.h), from which the
// reference page and the JSON Schema are made too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::job {

inline constexpr size_t kMaxFileBytes = size_t{1} << 20;

// Parses and validates `text`; `file` is how messages call it. `overrides` are the arguments of
// --set, "roles.worker.replicas=8", applied in order over the file's fields; a value that begins
// with [ or { or a quote is YAML, everything else is taken as it stands.
//
// InvalidArgument holds up to ten errors, one a line, in the file's order:
//   job.yaml:14:15: roles.worker.replicas: got -1, expected an integer from 0 to 100000
// and names the --set argument instead of the place for what came from one.
// `places` gets where its fields stood.
Result<Job> ParseJob(std::string_view text, const std::string& file,
                     const std::vector<std::string>& overrides = {},
                     FieldLocations* places = nullptr);

// The text of the job file `path` (at most 1 MiB), read once: it may be a FIFO, or /dev/stdin,
// which
// "-" is short for. A
// file that is missing or unreadable is InvalidArgument too: a wrong job file is wrong usage.
Result<std::string> ReadJobFile(const std::string& path);
// Reads `path` and parses it.
Result<Job> ParseJobFile(const std::string& path, const std::vector<std::string>& overrides = {});

// Makes the paths that a job names on this machine (data without a scheme, outputs, volumes, files,
// Marathon's authorities) absolute: those of the file as seen from the directory `folder`, those
// that --set gave from `here`. Commands do it before they hand a job on.
void ResolvePaths(const FieldLocations& places, const std::string& folder, const std::string& here,
                  Job* job);

// An entry of container.volumes. InvalidArgument says what was expected.
Result<Volume> ParseVolume(const std::string& text);

}  // namespace shoal::job
