// Host names of pods in commands and variables of foreign jobs. Kubernetes gives pods names that
// manifests contain ("train-master-0", "set-workers-0-0.set"); tasks of Shoal run under the names
// of their machines. Used by the importers of JobSets, Kubeflow's and Volcano's jobs and plain
// Jobs.
#pragma once

#include <string>
#include <vector>

#include "import/conversion/job_builder.h"

namespace shoal::importer {

// The pods of one role: their host names are `prefix` and an index.
struct PodHosts {
  std::string role;
  std::string prefix;
  std::string first;   // the host name of the first pod
  std::string domain;  // the only domain that may stand behind a name; empty: any
};

// Replaces the first pod's host in variables by the address of that task (a minor loss), and
// reports every other place that contains a pod's host as a loss at `spec`. Call when all roles
// have their final names, numbers of tasks and variables.
void ReplacePodHosts(const std::vector<PodHosts>& pods, FieldReader* spec, JobBuilder* builder);

}  // namespace shoal::importer
