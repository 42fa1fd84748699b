// The spec of a JobSet, which the TrainJobs of Kubeflow have too.
#pragma once

#include <map>
#include <string>

#include "import/kubernetes/pod_template.h"

namespace shoal::importer {

// What is known beforehand of a replicated job.
struct ReplicatedJobOptions {
  std::string role;  // whose name it has as a role; empty: its own
  PodOptions pod;
};

struct JobSetOptions {
  std::map<std::string, ReplicatedJobOptions> jobs;  // by the names of replicated jobs
};

// A JobSetSpec as the roles of the job. False after an error.
bool ReadJobSetSpec(FieldReader* spec, const JobSetOptions& ask, JobBuilder* builder);

}  // namespace shoal::importer
