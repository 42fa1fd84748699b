// The variables with which Marathon describes an app to its programs (MARATHON_APP_…). Used by
// marathon.cc.
#pragma once

#include <string>

#include "import/conversion/job_builder.h"

namespace shoal::importer {

// Sets MARATHON_APP_ID, MARATHON_APP_DOCKER_IMAGE, MARATHON_APP_RESOURCE_… and, for labels,
// MARATHON_APP_LABELS and MARATHON_APP_LABEL_…, unless the app's own `env` has them. A command that
// names one that only Marathon knows (MARATHON_APP_VERSION, MESOS_TASK_ID) is a loss. Call when the
// role has its command. Marks no field of `app` as read.
void SetMarathonVariables(FieldReader app, const std::string& id, job::Role* role);

}  // namespace shoal::importer
