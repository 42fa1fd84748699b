// Checks that every job passes before it is stored, besides those of the parser. Called by
// Controller::Submit, and by commands that only plan or schedule a job.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::controller {

// Inputs of the checks that the program provides.
struct JobValidation {
  // Locations of the job's fields, for messages; empty for a job that does not come from a file.
  job::FieldLocations locations = {};
  // Checks section `learn`, the data and the roles of a job of framework shoal
  // (learn::ValidateLearn; this room cannot include the trainers). Such jobs are refused without
  // it.
  std::function<Status(const job::Job&)> learn = {};
  // The job is handed to a server, whose catalogue knows the tables that the data names.
  bool to_server = false;
};

// Rejects fields that no engine supports (unused_fields.h), a missing directory of `files`, and
// what `learn` rejects. InvalidArgument with the field's location; FailedPrecondition for a job of
// framework shoal without `learn`.
Status ValidateJob(const job::Job& job, const JobValidation& validation);

// Prepends the location to a sentence that begins with a field's path, "outputs.model: missing".
std::string WithLocation(const job::Job& job, const job::FieldLocations& locations,
                         const std::string& sentence);

}  // namespace shoal::controller
