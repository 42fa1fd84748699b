// Placement and security fields of a job's pods, from the job file's section `kubernetes`. Pure.
// Used by objects.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"

namespace shoal::engine::kubernetes {

// The settings of a role's pods. The coordinator's pod has the job's settings without its
// privileges, which are for programs.
job::PodSettings AskOf(const DesiredJob& job, const std::string& role);

// Checks that the cluster accepts the settings. InvalidArgument names the field.
Status CheckPlacement(const DesiredJob& job, const job::PodSettings& ask);

// Adds to the spec of a task's pod: tolerations, node selector, affinity, spread, priority, service
// account, runtime class, image pull secrets, host network, and the task's excluded nodes. The
// coordinator gets the node rules but no rules about other pods: anti-affinity would keep tasks off
// its node, and spread constraints would count it.
void AddPlacement(const DesiredJob& job, const job::PodSettings& ask, const DesiredTask& task,
                  json::object* spec);

// Security contexts of the pod and of its containers: Shoal's defaults, overridden by the settings.
json::object PodSecurity(const DesiredJob& job, const job::PodSettings& ask);
json::object ContainerSecurity(const DesiredJob& job, const job::PodSettings& ask);
// Security context of the container that copies the launcher: the defaults without privileges.
json::object LauncherSecurity(const DesiredJob& job, const job::PodSettings& ask);

// Whether a text is a qualified name of a label or resource.
bool IsQualified(const std::string& text);

}  // namespace shoal::engine::kubernetes
