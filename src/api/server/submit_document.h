// One document of a job file on its way to a job or a group. Used by requests and by schedules.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/server/call.h"
#include "api/server/prepare_job.h"
#include "base/status.h"
#include "controller/groups/group_record.h"
#include "controller/store/job_record.h"

namespace shoal::api {

// Of a text that is stored with others in one record.
inline constexpr size_t kMaxStoredText = size_t{512} << 10;

// `made`: its job, or the first member's.
struct PlannedDocument {
  controller::StoredSubmission source;
  ParsedJob made;
  std::string manifest;
  size_t members = 0;  // 0: a single job
  std::string id;

  bool grouped() const { return members > 0; }
};

// A sentence about a field of the document, with its location.
std::string Located(const PlannedDocument& document, const std::string& field,
                    const std::string& sentence);

// Parses and checks the source; of a job with members so many that every value of every parameter
// is seen. Errors as of PrepareJob.
Result<PlannedDocument> PlanDocument(const Backend& backend,
                                     const controller::StoredSubmission& source);

// Lets the jobs of the source wait for these, whatever the text says.
void SetAfter(const std::vector<job::Dependency>& after, controller::StoredSubmission* source);

// The directory of the document's files, made of what was uploaded; empty without.
Result<std::filesystem::path> MakeFiles(const Backend& backend, const PlannedDocument& document);
// Moves it to where jobs are made from it later, below `folder` of the server's state.
Status KeepFiles(const Backend& backend, const std::filesystem::path& tree,
                 const std::string& folder, controller::StoredSubmission* source);

// Submits it with its id, as a group or as one job. `tree`: of MakeFiles, or empty. AlreadyExists.
Status SubmitDocument(const Backend& backend, PlannedDocument* document,
                      const std::filesystem::path& tree, const controller::JobLabels& labels);

}  // namespace shoal::api
