// From a task to the body of POST /containers/create: what is sent, exactly. Used by docker_job.cc
// and by `shoal plan --engine docker`.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"

namespace shoal::engine::docker {

// Where the launcher is in every container.
inline constexpr const char* kLauncherTarget = "/.shoal/shoal";
// The image of jobs that name none: there is nothing in it.
inline constexpr const char* kEmptyRepository = "shoal/empty";
inline constexpr const char* kEmptyTag = "1";

struct SpecOptions {
  std::string program;   // what argv[0] names where the launcher is meant; empty: none is
  std::string launcher;  // on this machine: the static executable that takes its place
  std::string user;      // "UID:GID" of who asks
  std::vector<std::string> environment;  // "NAME=value" of every task
  std::string user_name = {};            // the account's; empty: it has none
  std::vector<std::string> groups = {};  // who asks is in these as well, by number
};

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
// What a container cannot be made of: relative mounts, an image's name with blanks, …
Status CheckContainers(const DesiredJob& job);

// The launcher for a `program`: "PROGRAM-task" beside it, or $SHOAL_LAUNCHER. NotFound with the way
// to build it.
Result<std::string> FindLauncher(const std::string& program);

// For people: every request that Apply would make of a job of which nothing exists, secrets as ***,
// and the command that removes it all.
std::string DescribeContainers(const SpecOptions& options, const DesiredJob& job);

}  // namespace shoal::engine::docker
