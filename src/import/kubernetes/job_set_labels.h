// The labels that JobSet's controller writes on its pods, and as annotations too, by which
// variables learn a pod's place in its set: `fieldRef: {fieldPath: metadata.labels['jobset…']}`.
// Used by job_set.cc. Source: labelAndAnnotateObject in JobSet's jobset_controller.go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "import/kubernetes/pod_template.h"
#include "job/text/yaml_tree.h"

namespace shoal::importer {

// The place of a replicated job in its set.
struct ReplicatedJobPlace {
  int64_t jobs = 1;             // Jobs of it
  int64_t pods = 1;             // of each of its Jobs
  int64_t before = 0;           // Jobs of the replicated jobs before it in the set
  int64_t group_before = 0;     // the same of those in its group
  int64_t restarts = 0;         // maxRestarts of the set
  bool restarts_alone = false;  // its pods are also started again by themselves
};

// The place of the named job in a JobSetSpec, except for its pods and restarts. Malformed parts are
// read as absent.
ReplicatedJobPlace FindPlace(const job::Node& spec, const std::string& name);

// The labels of the pods of the named job. A label that all of them share has its value; others
// have one that only SetCounts understands.
KnownPodFields FindLabels(const job::Node& spec, const std::string& set, const std::string& name);

// Variables that could not be set.
struct UnsetCounts {
  std::vector<std::string> restarts;  // of the set; pods also start again by themselves
  std::vector<std::string> no_shell;  // the role has no command before which a shell can count
};

// Replaces the values of FindLabels, and {{shoal.index}}, the index within a Job, in the role's
// variables: by constants, by {{shoal.index}} where both count alike, or by shell arithmetic in a
// statement before the command. Removes the variables that cannot be set.
UnsetCounts SetCounts(const ReplicatedJobPlace& place, job::Role* role);

}  // namespace shoal::importer
