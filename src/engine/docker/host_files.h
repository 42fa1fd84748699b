// Prepares this machine's file system before a job's first container starts: the container's user
// must be able to read the job's directory, and mount sources must exist. Used by docker_engine.cc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::docker {

// Parses numeric "UID" or "UID:GID"; without a group it is the user's number. Nothing for names,
// which only the image can resolve.
struct ContainerUser {
  uid_t uid = 0;
  gid_t gid = 0;
};
std::optional<ContainerUser> ParseUser(const std::string& text);

// Creates the output directories (Mount::make_source). With `container.user` they and what is in
// the job's directory get that owner, and the directory gets the group, which needs root.
// InvalidArgument if that user is another one and this process is not root.
Status PrepareHostFiles(const DesiredJob& job);

}  // namespace shoal::engine::docker
