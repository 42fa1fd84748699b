// The JobSet of a TrainJob: the template of its TrainingRuntime with the values of the TrainJob put
// into it, as Kubeflow Trainer's controller builds it. Used by train_job.cc, which then reads the
// result as any JobSet. Every node keeps its location in the file.
#pragma once

#include <string>
#include <string_view>

#include "import/conversion/node_edit.h"

namespace shoal::importer {

// Values of the label that marks a replicated job's part in the training.
inline constexpr std::string_view kTrainerStep = "trainer";
inline constexpr std::string_view kDatasetStep = "dataset-initializer";
inline constexpr std::string_view kModelStep = "model-initializer";

// Finds a replicated job of a JobSetSpec (may be nullptr) by the label of its part, or by its name;
// nullptr if there is none.
job::Node* FindReplicatedJob(job::Node* spec, std::string_view step);
job::Node* FindReplicatedJobNamed(job::Node* spec, const std::string& name);
// The pod template of a replicated job; what is missing on the way is added. nullptr as FindOrAdd.
job::Node* PodTemplateOf(job::Node* replicated);
// The container of a replicated job with that name, or else the first, which ReadPod takes too;
// nullptr if there is none.
job::Node* FindContainer(job::Node* replicated, std::string_view name);
// The name of a replicated job, as JobSets call it.
std::string NameOfReplicatedJob(const job::Node& replicated);
// Makes the replicated job one Job of `nodes` pods. `place`: of the field that sets the number.
void SetNodes(int nodes, const job::SourceLocation& place, job::Node* replicated);

}  // namespace shoal::importer
