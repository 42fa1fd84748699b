// Settings of a job for Kubernetes clusters.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::job {

// Pod settings besides resources. Settings of a role replace the job's settings field by field; its
// labels and annotations are merged with the job's.
struct PodSettings {
  std::map<std::string, std::string> labels;       // on Jobs and pods, as queueing systems require
  std::map<std::string, std::string> annotations;  // on Jobs and pods
  std::map<std::string, std::string> node_selector;
  std::vector<std::string> tolerations;  // "KEY" or "KEY=VALUE", optionally followed by ":EFFECT"
  std::string service_account;
  std::vector<std::string> image_pull_secrets;
  std::string priority_class;
  std::string runtime_class;
  std::vector<std::string> volumes;  // "pvc:CLAIM:/TARGET" …, see engine/kubernetes/pod_volumes.h
  std::optional<bool> host_network;  // none: the job's value, else false
  // In the schema of the Kubernetes API, as JSON (pod_fields.h); empty: not set.
  std::string affinity;
  std::string topology_spread;             // a list of TopologySpreadConstraint
  std::string security_context;            // PodSecurityContext
  std::string container_security_context;  // SecurityContext of each container

  bool operator==(const PodSettings&) const = default;
};

// Kubernetes settings of a job besides its tasks' resources (docs/engines/kubernetes.md), for all
// its pods. Other engines ignore them.
struct Kubernetes : PodSettings {
  std::string context;     // context of the kubeconfig; empty: the current one
  std::string name_space;  // empty: the context's
  std::string launcher;    // image that holds /shoal-task; empty: the engine's default
  std::string gpu_resource = "nvidia.com/gpu";
  // Extended resources of every task except the coordinator, "rdma/hca=1", or of one role's tasks,
  // "worker:rdma/hca=1".
  std::vector<std::string> resources;

  bool operator==(const Kubernetes&) const = default;
};

// The settings of a role's pods: those of the job, overridden by those of the role.
PodSettings MergePodSettings(PodSettings ask, const PodSettings& role);

}  // namespace shoal::job
