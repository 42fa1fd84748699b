// What a job's containers need of this machine's file system before the first of them starts: their
// user must be able to read the job's directory, and what is mounted must exist. Used by
// docker_engine.cc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::docker {

// "UID" or "UID:GID" in numbers; a group that is not named is the user's number. Nothing for names,
// which the image alone knows.
struct ContainerUser {
  uid_t uid = 0;
  gid_t gid = 0;
};
std::optional<ContainerUser> ParseUser(const std::string& text);

// Makes the directories that outputs need (Mount::make_source), so that they do not stay behind in
// the containers. With `container.user` they are that user's, and so is the job's directory: root
// gives it to him. InvalidArgument where that user is another and we are not root.
Status PrepareHostFiles(const DesiredJob& job);

}  // namespace shoal::engine::docker
