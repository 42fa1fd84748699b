// Common parts of all Kubernetes kinds: quantities, metadata, pod templates.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "import/conversion/job_builder.h"
#include "import/kubernetes/pod_environment.h"

namespace shoal::importer {

// Parses a Kubernetes quantity: "500m", "2", "1e3", "1.5Gi" (suffixes n u m, k M G T P E, Ki Mi …
// Ei, or an exponent). nullopt for bad syntax.
std::optional<double> ParseQuantity(std::string_view text);

// Reads the job's name, labels and annotations from `metadata`; reports the other fields.
void ReadMetadata(FieldReader* document, JobBuilder* builder);

// Reads ttlSecondsAfterFinished: how long the job's record is kept after its end.
void ReadTtl(FieldReader* section, JobBuilder* builder);

struct PodOptions {
  std::vector<std::string> containers;  // possible names of the program's container; else the first
  std::string framework_port;           // name of the framework's own port
  bool needs_command = true;            // false: other tasks start the programs
  // The framework's own ports by number, which become no ports of the role.
  std::set<int64_t> framework_port_numbers = {};
  // Labels and annotations that the kind's controller writes on the pods.
  KnownPodFields labels = {};
};

// Fields of a pod that importers need for decisions.
struct PodSummary {
  std::string restart_policy;  // "Never", "OnFailure", "Always", or empty
};

// Reads a PodTemplateSpec: command, environment, resources and ports into the role, the image into
// the job. FinishImport (import.h) expands references $(NAME) in the command.
PodSummary ReadPod(FieldReader* pod_template, const PodOptions& options, job::Role* role,
                   JobBuilder* builder);

}  // namespace shoal::importer
