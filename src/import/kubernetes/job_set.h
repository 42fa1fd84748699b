// Imports a JobSetSpec, which Kubeflow's TrainJobs use too.
#pragma once

#include <map>
#include <string>

#include "import/kubernetes/pod_template.h"

namespace shoal::importer {

// Options for one replicated job.
struct ReplicatedJobOptions {
  std::string role;  // the role's name; empty: that of the replicated job
  PodOptions pod;
};

struct JobSetOptions {
  std::map<std::string, ReplicatedJobOptions> jobs;  // by name of the replicated job
};

// Adds the roles of a JobSetSpec to the job. False after an error.
bool ReadJobSetSpec(FieldReader* spec, const JobSetOptions& ask, JobBuilder* builder);

}  // namespace shoal::importer
