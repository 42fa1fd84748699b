// The spec of a JobSet, which the TrainJobs of Kubeflow have too.
#pragma once

#include <map>
#include <string>

#include "dialect/import/kubernetes.h"

namespace shoal::dialect {

// What is known beforehand of a replicated job.
struct ReplicatedAsk {
  std::string role;  // whose name it has as a role; empty: its own
  PodOptions pod;
};

struct JobSetAsk {
  std::map<std::string, ReplicatedAsk> jobs;  // by the names of replicated jobs
};

// A JobSetSpec as the roles of the job. False after an error.
bool ReadJobSetSpec(Section* spec, const JobSetAsk& ask, JobBuilder* builder);

}  // namespace shoal::dialect
