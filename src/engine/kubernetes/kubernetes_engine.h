// The engine of a Kubernetes cluster (1.29 and later): a task is a pod of an Indexed Job.
//
// objects.h renders the objects, plan_jobs.h decides which to create, change and delete,
// job_state.h interprets pods; pod_relay.h and kube_exec.h connect to pods.
// docs/design/engine-kubernetes.md shows the flow.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/kubernetes/kube_config.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

// Plain value; `clock` outlives the engine.
struct KubernetesEngineOptions {
  // Absolute path of shoal; in pods it is replaced by the launcher of an image. Empty: tasks run
  // unchanged and no launcher is added to their pods.
  std::string program;
  // Image that contains /shoal-task, for jobs that name none; empty: $SHOAL_KUBE_LAUNCHER_IMAGE.
  std::string launcher_image;
  kubernetes::KubeConfigSources place = kubernetes::DefaultKubeConfigSources();
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  std::chrono::seconds remove_grace{10};
  FindJobDir job_dir;  // finds jobs of other controller processes
};

// Starts a thread. Contacts a cluster only when a method needs it.
Result<std::unique_ptr<Engine>> MakeKubernetesEngine(KubernetesEngineOptions options);

}  // namespace shoal::engine
