#include "controller/run/validate_job.h"

#include <filesystem>
#include <system_error>

#include "controller/run/unused_fields.h"
#include "job/file/fields.h"

namespace shoal::controller {

std::string WithLocation(const job::Job& job, const job::FieldLocations& locations,
                         const std::string& sentence) {
  const std::string path = sentence.substr(0, sentence.find_first_of(":, "));
  const bool is_field = job::FindField(path.substr(0, path.find('.'))) != nullptr;
  return (is_field ? locations.Prefix(job.file, path) : "") + sentence;
}

Status ValidateJob(const job::Job& job, const JobValidation& validation) {
  if (job.framework == job::Framework::kShoal && !validation.learn)
    return FailedPrecondition("framework: got shoal, but this program has no trainers");
  Status valid = RefuseUnusedFields(job, validation.to_server);
  if (valid.ok() && validation.learn) valid = validation.learn(job);
  std::error_code error;
  if (valid.ok() && !job.files.empty() && !std::filesystem::is_directory(job.files, error))
    valid = InvalidArgument("files: got " + job.files + ", expected a directory that exists");
  // Errors in parameters and data are wrong usage at this point, before a job exists.
  return valid.ok() ? valid
                    : InvalidArgument(WithLocation(job, validation.locations, valid.message()));
}

}  // namespace shoal::controller
