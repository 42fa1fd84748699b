// Renders a job as Kubernetes objects. Pure. Used by kubernetes_engine.cc and by `shoal plan
// --engine kubernetes`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "engine/kubernetes/decode.h"

namespace shoal::engine::kubernetes {

// Path of the launcher in its own image, and in pods of other images: a copy, or the image mounted
// as a volume.
inline constexpr const char* kLauncherSource = "/shoal-task";
inline constexpr const char* kLauncherPath = "/.shoal/bin/shoal";
inline constexpr const char* kLauncherMounted = "/.shoal/image/shoal-task";
inline constexpr const char* kBootstrapPath = "/.shoal/seed";
inline constexpr const char* kDirPath = "/.shoal/job";

// Settings of the engine and the cluster that affect every object.
struct ObjectOptions {
  std::string program;             // an argv[0] equal to this means the launcher; empty: none
  std::string launcher_image;      // default of jobs that name none
  std::chrono::seconds grace{10};  // between SIGTERM and SIGKILL of a deleted pod
  bool image_volumes = false;      // the cluster can mount an image (image_volumes.h)
  std::chrono::seconds keep{600};  // time until the cluster removes a finished job's objects
};

// A Kubernetes Job: all tasks of a role, or a single task that differs from the others.
struct RoleJob {
  std::string name;
  std::string role;
  int single = -1;  // index of its task; -1 for a Job of a whole role
  int count = 1;    // of a whole role: tasks 0 … count-1
  int order = 0;
  bool restarts = true;
  std::map<int, int> bases;  // first incarnation of an index in this Job, if not 0
  json::object pod;          // its template
  std::string digest;        // of the template
};

// Names of a job's objects: DNS labels derived from its id.
std::string BaseName(const std::string& job_id);
std::string RoleJobName(const std::string& job_id, const std::string& role);
std::string SingleJobName(const std::string& job_id, const std::string& role, int index, int base);
// The coordinator's address for the job's launchers, as a name in the cluster's DNS.
Endpoint CoordinatorAddress(const std::string& job_id, const std::string& name_space);

// Checks that the cluster accepts the job: the id fits a label, tolerations are valid, …
// InvalidArgument names the field.
Status CheckObjects(const ObjectOptions& options, const DesiredJob& job);

// Whether a pod of the job needs the launcher but runs another image.
bool BringsLauncher(const ObjectOptions& options, const DesiredJob& job);

// The template of a task's pod. `indexed`: shared by all tasks of the role, each of which gets its
// index from the cluster.
json::object PodTemplate(const ObjectOptions& options, const DesiredJob& job,
                         const DesiredTask& task, const std::string& name_space, bool indexed);
// The role's tasks as one Indexed Job if they are equal and numbered from 0; else nothing.
std::optional<RoleJob> AsOneJob(const ObjectOptions& options, const DesiredJob& job,
                                const std::vector<const DesiredTask*>& tasks,
                                const std::string& name_space);
RoleJob AsSingleJob(const ObjectOptions& options, const DesiredJob& job, const DesiredTask& task,
                    const std::string& name_space, int base);

// The Job that owns all other objects of the job by ownerReferences.
struct Owner {
  std::string name;
  std::string uid;  // empty: the object has no owner
};
json::object JobObject(const ObjectOptions& options, const DesiredJob& job, const RoleJob& role,
                       const Owner& owner, bool suspended);
// A headless Service that gives DNS names to all pods of the job, ready or not.
json::object ServiceObject(const DesiredJob& job, const Owner& owner);
// The Secret with the job's bootstrap files; nothing if it has none.
std::optional<json::object> SecretObject(const DesiredJob& job, const Owner& owner);

// Text for the user: every object that Apply would send for a new job, in that order, as YAML with
// secrets as ***, and the command that removes the job.
std::string DescribeObjects(const ObjectOptions& options, const DesiredJob& job,
                            const std::string& name_space);

}  // namespace shoal::engine::kubernetes
