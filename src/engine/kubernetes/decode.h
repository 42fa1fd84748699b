// What the API server says, decoded: bounded, checked, nothing believed. Used by the engine's
// threads; fuzzed by tests/fuzz/kubernetes_fuzz.cc.
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

// Labels and annotations of everything that we make.
inline constexpr const char* kJobLabel = "shoal.dev/job";
inline constexpr const char* kRoleLabel = "shoal.dev/role";
inline constexpr const char* kIndexLabel = "shoal.dev/index";        // of a Job of one task
inline constexpr const char* kOrderNote = "shoal.dev/order";         // of the Job among the job's
inline constexpr const char* kTemplateNote = "shoal.dev/template";   // digest of the pod template
inline constexpr const char* kBasesNote = "shoal.dev/incarnations";  // {"INDEX": first of this Job}
// The cluster's own.
inline constexpr const char* kCompletionIndex = "batch.kubernetes.io/job-completion-index";
inline constexpr const char* kFailureCount = "batch.kubernetes.io/job-index-failure-count";
inline constexpr const char* kJobNameLabel = "batch.kubernetes.io/job-name";
// The container that is the task.
inline constexpr const char* kTaskContainer = "task";

// A pod of ours.
struct PodView {
  std::string name;
  std::string uid;
  std::string job;       // label
  std::string job_name;  // the Job that made it
  std::string role;
  int index = 0;
  int failures = 0;  // of its index before it, in its Job
  std::string node;  // empty: on none yet
  std::string address;
  std::string phase;  // Pending, Running, Succeeded, Failed, Unknown
  bool deleting = false;
  bool started = false;  // its container has run
  bool running = false;
  bool ended = false;
  std::string program;           // its container's first word
  int exit_code = -1;            // valid if ended, and its container has run
  std::optional<int64_t> lived;  // seconds, by its node's clock, of what has ended
  bool out_of_memory = false;
  bool cannot_start = false;  // there is no such program, or it is none
  std::string waits;          // why it does not run, one sentence; empty: nothing is wrong
  bool pull_failed = false;   // `waits` is the registry's answer (ErrImagePull),
  bool backs_off = false;     // or only that the node will ask it again (ImagePullBackOff)
  std::string end_reason;     // why the cluster ended it; empty: it did not
};

// A Job of ours.
struct JobView {
  std::string name;
  std::string uid;
  std::string job;
  std::string role;
  int single = -1;      // its task's index, of a Job of one task
  int completions = 0;  // of the others: indexes below it
  bool suspended = false;
  bool restarts = true;  // what is lost is made again
  bool finished = false;
  int order = 0;
  std::string digest;
  std::map<int, int> bases;  // by index
  // Whether the task is this Job's.
  bool Has(int index) const { return single >= 0 ? index == single : index < completions; }
  int BaseOf(int index) const;
};

struct WatchEvent {
  enum class Kind : uint8_t { kAdded, kModified, kDeleted, kBookmark, kError, kOther };
  Kind kind = Kind::kOther;
  std::string version;         // to go on from
  std::optional<PodView> pod;  // nothing: none of ours, or damaged
  int error_code = 0;          // of kError
  std::string error;
};

template <typename T>
struct ListResult {
  std::vector<T> items;
  std::string version;  // resourceVersion of the list
};

Result<ListResult<PodView>> DecodePods(const json::object& list);
Result<ListResult<JobView>> DecodeJobs(const json::object& list);
Result<JobView> DecodeJob(const json::object& object);
Result<WatchEvent> DecodeWatchLine(std::string_view line);

// Of events of the reason FailedCreate: what is wrong, by the Job's name.
std::map<std::string, std::string> DecodeFailedCreates(const json::object& list);
// Of any object.
bool IsBeingDeleted(const json::object& object);
// What the schedulable, ready nodes have together.
Capacity DecodeNodes(const json::object& list, const std::string& gpu_resource);
// The server's words of a refusal; made up of the code if it has none.
std::string DecodeStatus(std::string_view body, int code);

// "2026-11-22T14:10:00Z" as seconds since 1970; nothing if it is none.
std::optional<int64_t> ReadTime(const std::string& text);
// "1500m", "2", "1e3", "128974848", "129M", "123Mi": a Quantity. Nothing if it is none.
std::optional<double> ReadQuantity(std::string_view text);

}  // namespace shoal::engine::kubernetes
