// Parses the text of a job file (YAML, docs/job-file.md) into a validated Job.
//
// Entry point for every job from a file, called by `shoal run`, `plan` and `schedule`. One table
// (fields.h) defines the fields with their types, ranges, defaults and descriptions; the reference
// page and the JSON Schema are generated from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::job {

inline constexpr size_t kMaxFileBytes = size_t{1} << 20;

// Parses and validates `text`; messages call it `file`. `overrides` are the arguments of --set,
// "roles.worker.replicas=8", applied in order to the file's fields; a value that begins with [ or {
// or a quote is parsed as YAML, any other value is taken literally.
//
// InvalidArgument holds up to ten errors, one per line, in the file's order:
//   job.yaml:14:15: roles.worker.replicas: got -1, expected an integer from 0 to 100000
// Errors of --set name the argument in place of the location. `places` receives the locations of
// the fields.
Result<Job> ParseJob(std::string_view text, const std::string& file,
                     const std::vector<std::string>& overrides = {},
                     FieldLocations* places = nullptr);

// Which job of a file to parse.
struct DocumentOptions {
  std::vector<std::string> overrides = {};
  std::optional<size_t> document = {};  // one of several YAML documents, from 0; none: the only one
  // Of a job with members (Triggers::has_members): the one to make, named NAME-INDEX and without
  // the sections `matrix` and `sweep`. None: the job itself, with the values of its first member.
  std::optional<size_t> member = {};
};

// ParseJob for one of several YAML documents, and for a member of a job.
Result<Job> ParseDocument(std::string_view text, const std::string& file,
                          const DocumentOptions& options, FieldLocations* places = nullptr);

// The numbers of the YAML documents in the text that are not empty; at most 100. InvalidArgument as
// from ParseJob.
Result<std::vector<size_t>> ListDocuments(std::string_view text, const std::string& file);

// Reads the job file `path` (at most 1 MiB) in one pass, so it may be a FIFO or /dev/stdin ("-").
// InvalidArgument also for a missing or unreadable file: naming a wrong file is wrong usage.
Result<std::string> ReadJobFile(const std::string& path);
// Reads and parses `path`.
Result<Job> ParseJobFile(const std::string& path, const std::vector<std::string>& overrides = {});

// Makes the job's paths on this machine absolute (data without a scheme, outputs, volumes, files,
// Marathon's authorities): paths from the file relative to `folder`, paths from --set relative to
// `here`. Commands call it before they pass a job on.
void ResolvePaths(const FieldLocations& places, const std::string& folder, const std::string& here,
                  Job* job);

// Parses an entry of container.volumes. InvalidArgument names the expected form.
Result<Volume> ParseVolume(const std::string& text);

}  // namespace shoal::job
