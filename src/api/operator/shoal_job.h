// The custom resource ShoalJob as the API server sends it: a job file in a Kubernetes namespace.
//
// crd.h defines it for the API server, decide.h says what follows from one. Input is untrusted:
// bounded and checked. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace shoal::api {

inline constexpr const char* kResourceGroup = "shoal.dev";
inline constexpr const char* kResourceVersion = "v1";
inline constexpr const char* kResourcePlural = "shoaljobs";
inline constexpr const char* kResourceKind = "ShoalJob";
// Keeps a deleted object until its job has ended and its pods are gone.
inline constexpr const char* kFinalizer = "shoal.dev/job";

struct ResourceKey {
  std::string name_space;
  std::string name;
  auto operator<=>(const ResourceKey&) const = default;
  std::string text() const { return name_space + "/" + name; }
};

// One object. Plain value.
struct ShoalJob {
  ResourceKey key;
  std::string uid;
  std::string version;     // resourceVersion, for changes that must not overwrite others
  int64_t generation = 0;  // of the spec
  bool deleting = false;
  std::vector<std::string> finalizers;  // all, Shoal's and others'
  bool suspend = false;                 // spec.suspend
  json::object job;                     // spec.job
  json::object status;                  // as the operator wrote it last; empty: never
  std::string unreadable;               // why spec.job cannot be read, which is empty then

  bool has_finalizer() const;
  std::string StatusText(std::string_view field) const;
  int64_t observed_generation() const;
};

struct ShoalJobList {
  std::vector<ShoalJob> items;
  std::string version;    // from which to watch
  std::string continues;  // token of the next page; empty: the last one
};

// One line of a watch stream. Plain value.
struct ShoalJobEvent {
  enum class Kind : uint8_t { kChanged, kDeleted, kBookmark, kError, kOther };
  Kind kind = Kind::kOther;
  std::string version;          // from which to continue; empty: unknown
  std::optional<ShoalJob> job;  // none: it cannot be read
  int error_code = 0;
  std::string error;
};

// Depth of spec.job, as of a job file.
inline constexpr int kMaxJobDepth = 32;

// Parses an answer of the API server whose objects may be nested as deeply as it allows: one such
// object must not hide the others. DataLoss.
Result<json::object> ParseAnswer(std::string_view text);
// InvalidArgument names what is wrong with it.
Result<ShoalJob> DecodeShoalJob(const json::object& object);
// Objects that cannot be read are left out.
Result<ShoalJobList> DecodeShoalJobs(const json::object& list);
Result<ShoalJobEvent> DecodeShoalJobLine(std::string_view line);

// The text of the job file: spec.job as YAML, named after the object if it has no name of its own.
std::string JobFileOf(const ShoalJob& object);
// Digest of the part of spec.job that cannot be changed once the job is submitted: everything but
// the numbers of tasks of its roles.
std::string FrozenDigest(const json::object& job);
// The numbers of tasks that spec.job gives, by role.
std::map<std::string, int> ReplicasOf(const json::object& job);

}  // namespace shoal::api
