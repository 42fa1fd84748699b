// Where the pods of a job run, and as whom: what of a pod's template comes from the job file's
// section `kubernetes` as it is. Pure. Used by objects.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"

namespace shoal::engine::kubernetes {

// What the pods of a role ask of the cluster. The coordinator's pod asks what the job does, but no
// rights: these are for programs.
job::PodSettings AskOf(const DesiredJob& job, const std::string& role);

// What of it the cluster cannot be asked for.
Status CheckPlacement(const DesiredJob& job, const job::PodSettings& ask);

// Into the spec of a task's pod: tolerations, node selector, affinity, spread, priority, account,
// runtime, secrets for images, host network; nodes that the task must not be on whatever else the
// job says. The coordinator follows nodes as all do, but no pods: it would keep those off its node
// that shun each other, and would be counted with them.
void AddPlacement(const DesiredJob& job, const job::PodSettings& ask, const DesiredTask& task,
                  json::object* spec);

// The security contexts of the pod and of its containers: ours, with what is asked in their place.
json::object PodSecurity(const DesiredJob& job, const job::PodSettings& ask);
json::object ContainerSecurity(const DesiredJob& job, const job::PodSettings& ask);
// Of the container that only copies the launcher: the same without further rights.
json::object LauncherSecurity(const DesiredJob& job, const job::PodSettings& ask);

// Whether it can be the name of a label or of a resource.
bool IsQualified(const std::string& text);

}  // namespace shoal::engine::kubernetes
