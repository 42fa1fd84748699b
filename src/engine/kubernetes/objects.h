// From a job to the objects that are sent to the cluster: what is sent, exactly. Pure. Used by
// kubernetes_engine.cc and by `shoal plan --engine kubernetes`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "engine/kubernetes/decode.h"

namespace shoal::engine::kubernetes {

// Where an image of the launcher has it, and where it is in pods of other images: a copy of it, or
// that image as a volume.
inline constexpr const char* kLauncherSource = "/shoal-task";
inline constexpr const char* kLauncherPath = "/.shoal/bin/shoal";
inline constexpr const char* kLauncherMounted = "/.shoal/image/shoal-task";
inline constexpr const char* kBootstrapPath = "/.shoal/seed";
inline constexpr const char* kDirPath = "/.shoal/job";

struct ObjectOptions {
  std::string program;             // what argv[0] names where the launcher is meant; empty: none is
  std::string launcher_image;      // of jobs that name none
  std::chrono::seconds grace{10};  // of a task that is deleted
  bool image_volumes = false;      // the cluster can mount an image (image_volumes.h)
  std::chrono::seconds keep{600};  // a finished job's objects, before the cluster removes them
};

// A Job of the cluster: all tasks of a role, or one that is not like the others.
struct RoleJob {
  std::string name;
  std::string role;
  int single = -1;  // index of its one task
  int count = 1;    // of the others: tasks 0 … count-1
  int order = 0;
  bool restarts = true;
  std::map<int, int> bases;  // incarnation that an index begins with here, where not 0
  json::object pod;          // its template
  std::string digest;        // of the template
};

// Names of what belongs to a job: DNS labels made of its id.
std::string BaseName(const std::string& job_id);
std::string RoleJobName(const std::string& job_id, const std::string& role);
std::string SingleJobName(const std::string& job_id, const std::string& role, int index, int base);
// Where the job's launchers find its coordinator. The name is one of the cluster's DNS.
Endpoint CoordinatorAddress(const std::string& job_id, const std::string& name_space);

// What the cluster cannot be asked for: an id too long for a label, a wrong toleration, …
Status CheckObjects(const ObjectOptions& options, const DesiredJob& job);

// Whether a pod of the job needs the launcher, and is of another image.
bool BringsLauncher(const ObjectOptions& options, const DesiredJob& job);

// The template of a task's pod. `indexed`: of all tasks of its role, each of which knows its own
// index.
json::object PodTemplate(const ObjectOptions& options, const DesiredJob& job,
                         const DesiredTask& task, const std::string& name_space, bool indexed);
// The role's tasks as one Job, if they are alike and number from 0; else nothing.
std::optional<RoleJob> AsOneJob(const ObjectOptions& options, const DesiredJob& job,
                                const std::vector<const DesiredTask*>& tasks,
                                const std::string& name_space);
RoleJob AsSingleJob(const ObjectOptions& options, const DesiredJob& job, const DesiredTask& task,
                    const std::string& name_space, int base);

// The Job whose removal removes all others, by their ownerReferences.
struct Owner {
  std::string name;
  std::string uid;  // empty: the object has no owner
};
json::object JobObject(const ObjectOptions& options, const DesiredJob& job, const RoleJob& role,
                       const Owner& owner, bool suspended);
// One headless service: names for all pods of the job, ready or not.
json::object ServiceObject(const DesiredJob& job, const Owner& owner);
// The job's small files; nothing if it has none.
std::optional<json::object> SecretObject(const DesiredJob& job, const Owner& owner);

// For people: every object that Apply would send for a job of which nothing exists, in that order,
// as YAML, secrets as ***, and the command that removes it all.
std::string DescribeObjects(const ObjectOptions& options, const DesiredJob& job,
                            const std::string& name_space);

}  // namespace shoal::engine::kubernetes
