// The engine of a Kubernetes cluster (1.29 and later): a task is a pod of an Indexed Job.
//
// objects.h says what is sent, plan_jobs.h when, job_view.h what becomes of it; relay.h and
// kube_exec.h reach into pods. docs/design/engine-kubernetes.md has the flow.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/kubernetes/kube_config.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

struct KubernetesEngineOptions {
  // Absolute path of shoal; its tasks run the launcher from an image instead. Empty: tasks are as
  // they are, nothing is put into their pods.
  std::string program;
  // That holds /shoal-task, for jobs that name none; empty: $SHOAL_KUBE_LAUNCHER_IMAGE.
  std::string launcher_image;
  kubernetes::KubeConfigSources place = kubernetes::DefaultKubeConfigSources();
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  std::chrono::seconds remove_grace{10};
  FindJobDir job_dir;  // of jobs that this engine has not been told of by Adopt
};

// Starts a thread. Asks no cluster for anything yet.
Result<std::unique_ptr<Engine>> MakeKubernetesEngine(KubernetesEngineOptions options);

}  // namespace shoal::engine
