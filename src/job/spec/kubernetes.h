// The part of a job that only a Kubernetes cluster looks at.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::job {

// What pods ask of the cluster beyond their resources. Of a role: in place of what the job's
// `kubernetes` has, each where it says something; its labels and annotations stand beside the
// job's.
struct PodSettings {
  std::map<std::string, std::string> labels;  // of Jobs and pods, as queues above Kubernetes want
  std::map<std::string, std::string> annotations;  // likewise
  std::map<std::string, std::string> node_selector;
  std::vector<std::string> tolerations;  // "KEY", "KEY=VALUE", each with ":EFFECT" behind it or not
  std::string service_account;
  std::vector<std::string> image_pull_secrets;
  std::string priority_class;
  std::string runtime_class;
  std::vector<std::string> volumes;  // "pvc:CLAIM:/TARGET" …, see engine/kubernetes/pod_volumes.h
  std::optional<bool> host_network;  // none: false, or what the job says
  // In Kubernetes' own words, as JSON (pod_fields.h); empty: nothing.
  std::string affinity;
  std::string topology_spread;             // a list of TopologySpreadConstraint
  std::string security_context;            // PodSecurityContext
  std::string container_security_context;  // SecurityContext, of each container

  bool operator==(const PodSettings&) const = default;
};

// What a job asks of Kubernetes beyond its tasks' resources (docs/engines/kubernetes.md), of all
// its pods. Other engines ignore it.
struct Kubernetes : PodSettings {
  std::string context;     // of the kubeconfig; empty: its current one
  std::string name_space;  // empty: the context's
  std::string launcher;    // image that holds /shoal-task; empty: the engine's default
  std::string gpu_resource = "nvidia.com/gpu";
  // Of every task but the coordinator: "rdma/hca=1"; of one role's: "worker:rdma/hca=1".
  std::vector<std::string> resources;

  bool operator==(const Kubernetes&) const = default;
};

// What the pods of a role ask, of a job that asks `ask`.
PodSettings MergePodSettings(PodSettings ask, const PodSettings& role);

}  // namespace shoal::job
