// Renders a task as the body of POST /containers/create. Pure. Used by docker_worker.cc and by
// `shoal plan --engine docker`.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"

namespace shoal::engine::docker {

// Path of the launcher in every container.
inline constexpr const char* kLauncherTarget = "/.shoal/shoal";
// The empty image of jobs that name none.
inline constexpr const char* kEmptyRepository = "shoal/empty";
inline constexpr const char* kEmptyTag = "1";

// Properties of this machine and user that every container gets.
struct SpecOptions {
  std::string program;   // an argv[0] equal to this means the launcher; empty: no launcher
  std::string launcher;  // on this machine: the static executable that is mounted
  std::string user;      // "UID:GID" of this process
  std::vector<std::string> environment;  // "NAME=value" of every task
  std::string user_name = {};            // account name; empty: none
  std::vector<std::string> groups = {};  // supplementary groups, by number
};

// One start of a task. Pointers must stay valid during the call.
struct TaskSpecInput {
  const DesiredJob* job = nullptr;
  const DesiredTask* task = nullptr;
  int incarnation = 0;
  int order = 0;                  // among the job's tasks
  std::vector<std::string> gpus;  // uuids
};

// "shoal-JOB-ROLE-INDEX-INCARNATION".
std::string ContainerName(const std::string& job, const std::string& role, int index,
                          int incarnation);
// The image that the job's tasks run in.
std::string ImageOf(const DesiredJob& job);
// Pure. `job` and `task` passed CheckContainers.
// The network of a job that has its own.
std::string NetworkName(const std::string& job);
json::object MakeNetwork(const std::string& job);

json::object MakeContainer(const SpecOptions& options, const TaskSpecInput& input);
// Checks that containers can be created: absolute mounts, a valid image name, … InvalidArgument.
Status CheckContainers(const DesiredJob& job);

// The static launcher of `program`: "PROGRAM-task" beside it, or $SHOAL_LAUNCHER. NotFound says how
// to build it.
Result<std::string> FindLauncher(const std::string& program);

// Text for the user: every request that Apply would make for a new job, with secrets as ***, and
// the command that removes the job.
std::string DescribeContainers(const SpecOptions& options, const DesiredJob& job);

}  // namespace shoal::engine::docker
