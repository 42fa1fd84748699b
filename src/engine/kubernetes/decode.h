// Decoders of the API server's responses. Input is untrusted: bounded and checked. Pure. Fuzzed by
// tests/fuzz/kubernetes_fuzz.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::kubernetes {

// Labels and annotations of all objects that Shoal creates.
inline constexpr const char* kJobLabel = "shoal.dev/job";
inline constexpr const char* kRoleLabel = "shoal.dev/role";
inline constexpr const char* kIndexLabel = "shoal.dev/index";  // only on a Job of one task
inline constexpr const char* kOrderNote =
    "shoal.dev/order";  // order of the Job among the job's Jobs
inline constexpr const char* kTemplateNote = "shoal.dev/template";   // digest of the pod template
inline constexpr const char* kBasesNote = "shoal.dev/incarnations";  // {"INDEX": first of this Job}
// Labels that the cluster sets.
inline constexpr const char* kCompletionIndex = "batch.kubernetes.io/job-completion-index";
inline constexpr const char* kFailureCount = "batch.kubernetes.io/job-index-failure-count";
inline constexpr const char* kJobNameLabel = "batch.kubernetes.io/job-name";
// Name of the container that runs the task.
inline constexpr const char* kTaskContainer = "task";

// State of a pod that Shoal created.
struct PodView {
  std::string name;
  std::string uid;
  std::string job;       // label
  std::string job_name;  // the Job that made it
  std::string role;
  int index = 0;
  int failures = 0;  // earlier failures of its index in its Job
  std::string node;  // empty: not scheduled yet
  std::string address;
  std::string phase;  // Pending, Running, Succeeded, Failed, Unknown
  bool deleting = false;
  bool started = false;  // its container has run
  bool running = false;
  bool ended = false;
  std::string program;           // first word of its container's command
  int exit_code = -1;            // valid if ended, and its container has run
  std::optional<int64_t> lived;  // seconds it ran, by its node's clock, once ended
  bool out_of_memory = false;
  bool cannot_start = false;  // the program does not exist or cannot be executed
  std::string waits;          // reason why it does not run, one sentence; empty: none
  bool pull_failed = false;   // `waits` is the registry's response (ErrImagePull)
  bool backs_off = false;     // `waits` is only the back-off of the node (ImagePullBackOff)
  std::string end_reason;     // why the cluster ended it; empty: the cluster did not end it
};

// State of a Job that Shoal created.
struct JobView {
  std::string name;
  std::string uid;
  std::string job;
  std::string role;
  int single = -1;      // index of the task of a single-task Job; -1 for an Indexed Job
  int completions = 0;  // of an Indexed Job: it has the indexes below this
  bool suspended = false;
  bool restarts = true;  // lost tasks are restarted
  bool finished = false;
  int order = 0;
  std::string digest;
  std::map<int, int> bases;  // first incarnation in this Job, by index
  // Whether this Job contains the task.
  bool Has(int index) const { return single >= 0 ? index == single : index < completions; }
  int BaseOf(int index) const;
};

// One line of a watch stream.
struct WatchEvent {
  enum class Kind : uint8_t { kAdded, kModified, kDeleted, kBookmark, kError, kOther };
  Kind kind = Kind::kOther;
  std::string version;         // resourceVersion from which to continue
  std::optional<PodView> pod;  // nothing: not created by Shoal, or invalid
  int error_code = 0;          // of kError
  std::string error;
};

// A decoded list with the version from which to watch.
template <typename T>
struct ListResult {
  std::vector<T> items;
  std::string version;  // resourceVersion of the list
};

Result<ListResult<PodView>> DecodePods(const json::object& list);
Result<ListResult<JobView>> DecodeJobs(const json::object& list);
Result<JobView> DecodeJob(const json::object& object);
Result<WatchEvent> DecodeWatchLine(std::string_view line);

// Messages of events with the reason FailedCreate, by the Job's name.
std::map<std::string, std::string> DecodeFailedCreates(const json::object& list);
// Whether an object has a deletion timestamp.
bool IsBeingDeleted(const json::object& object);
// Total resources of the ready and schedulable nodes.
Capacity DecodeNodes(const json::object& list, const std::string& gpu_resource);
// The server's message in an error response; a text with the code if there is none.
std::string DecodeStatus(std::string_view body, int code);

// "2026-11-22T14:10:00Z" as seconds since 1970; nothing if it is malformed.
std::optional<int64_t> ReadTime(const std::string& text);
// "1500m", "2", "1e3", "128974848", "129M", "123Mi": a Quantity. Nothing if it is malformed.
std::optional<double> ReadQuantity(std::string_view text);

}  // namespace shoal::engine::kubernetes
