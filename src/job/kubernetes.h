// The part of a job that only a Kubernetes cluster looks at.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace shoal::job {

// What a job asks of Kubernetes beyond its tasks' resources (docs/engines/kubernetes.md). Other
// engines ignore it.
struct Kubernetes {
  std::string context;     // of the kubeconfig; empty: its current one
  std::string name_space;  // empty: the context's
  std::string launcher;    // image that holds /shoal-task; empty: the engine's default
  std::map<std::string, std::string> labels;  // of Jobs and pods, as queues above Kubernetes want
  std::map<std::string, std::string> annotations;  // likewise
  std::map<std::string, std::string> node_selector;
  std::vector<std::string> tolerations;  // "KEY", "KEY=VALUE", each with ":EFFECT" behind it or not
  std::string service_account;
  std::vector<std::string> image_pull_secrets;
  std::string priority_class;
  std::vector<std::string> volumes;  // see KubernetesVolume
  bool host_network = false;
  std::string gpu_resource = "nvidia.com/gpu";
  // In Kubernetes' own words, as JSON (pod_fields.h); empty: nothing. Of all the job's pods.
  std::string affinity;
  std::string topology_spread;             // a list of TopologySpreadConstraint
  std::string security_context;            // PodSecurityContext
  std::string container_security_context;  // SecurityContext, of each container
  // Of every task but the coordinator: "rdma/hca=1"; of one role's: "worker:rdma/hca=1".
  std::vector<std::string> resources;

  bool operator==(const Kubernetes&) const = default;
};

}  // namespace shoal::job
