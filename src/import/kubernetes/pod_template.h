// What Kubernetes' own formats have in common in all dialects: quantities and pod templates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/conversion/importer.h"

namespace shoal::importer {

// "500m", "2", "1e3", "1.5Gi": a number with the suffixes of Kubernetes' quantities (n u m, k M G T
// P E, Ki Mi … Ei, or an exponent). Nothing on bad syntax.
std::optional<double> ParseQuantity(std::string_view text);

// metadata: the job's name; the rest is told.
void ReadMetadata(FieldReader* document, JobBuilder* builder);

// ttlSecondsAfterFinished: for how long the job's record is kept after its end.
void ReadTtl(FieldReader* section, JobBuilder* builder);

struct PodOptions {
  std::vector<std::string> containers;  // names of the one that matters; else the first
  std::string framework_port;           // a port of this name is the framework's own
  bool needs_command = true;            // false: others start programs in it
};

// What of a pod the importers decide by.
struct PodSummary {
  std::string restart_policy;  // "Never", "OnFailure", "Always", or empty
};

// Reads a PodTemplateSpec into the role: command, environment, resources, ports; the image into the
// job. References $(NAME) in the command are left for FinishImport (import.h).
PodSummary ReadPod(FieldReader* pod_template, const PodOptions& options, job::Role* role,
                   JobBuilder* builder);

}  // namespace shoal::importer
