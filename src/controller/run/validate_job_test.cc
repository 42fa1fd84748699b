#include "controller/run/validate_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::controller {
namespace {

using testing::HasSubstr;

job::Job JobOf(job::Framework framework) {
  job::Job job;
  job.file = "job.yaml";
  job.framework = framework;
  return job;
}

TEST(ValidateJob, RefusesATrainersJobWithoutTheTrainersRules) {
  const job::Job job = JobOf(job::Framework::kShoal);
  EXPECT_EQ(ValidateJob(job, {}).code(), Code::kFailedPrecondition);
  JobValidation validation;
  validation.learn = [](const job::Job&) { return Status::Ok(); };
  EXPECT_TRUE(ValidateJob(job, validation).ok());
  EXPECT_TRUE(ValidateJob(JobOf(job::Framework::kGeneric), {}).ok());
}

TEST(ValidateJob, ErrorsNameTheLocationOfTheField) {
  JobValidation validation;
  validation.locations.at["learn"] = {3, 5, -1};
  validation.learn = [](const job::Job&) { return NotFound("learn: there is no algorithm"); };
  const Status status = ValidateJob(JobOf(job::Framework::kShoal), validation);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "job.yaml:3:5: learn: there is no algorithm");
}

TEST(ValidateJob, RefusesAMissingDirectoryOfFiles) {
  job::Job job = JobOf(job::Framework::kGeneric);
  job.files = "/nonexistent-root-of-tests/files";
  EXPECT_THAT(ValidateJob(job, {}).message(), HasSubstr("expected a directory that exists"));
}

}  // namespace
}  // namespace shoal::controller
