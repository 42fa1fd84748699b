// What the Docker daemon says, decoded: bounded, checked, nothing believed. Used by docker_api.cc;
// fuzzed by tests/fuzz/docker_fuzz.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::docker {

// Labels of everything that we make.
inline constexpr const char* kJobLabel = "shoal.dev/job";
inline constexpr const char* kRoleLabel = "shoal.dev/role";
inline constexpr const char* kIndexLabel = "shoal.dev/index";
inline constexpr const char* kIncarnationLabel = "shoal.dev/incarnation";
inline constexpr const char* kOrderLabel = "shoal.dev/order";  // among the job's tasks
inline constexpr const char* kGpuLabel = "shoal.dev/gpus";     // uuids, separated by commas

// A container of ours, as its labels say.
struct TaskLabels {
  std::string job;
  std::string role;
  int index = 0;
  int incarnation = 0;
  int order = 0;
};

struct ContainerSummary {
  std::string id;
  TaskLabels task;
  bool running = false;  // paused or not
  bool paused = false;
  int exit_code = -1;  // -1: runs, was never started, or it is not known
};

struct ContainerState {
  std::string id;
  std::optional<TaskLabels> task;  // nothing: it is not one of ours
  bool running = false;
  bool out_of_memory = false;
  int exit_code = -1;
  std::string error;  // the daemon's, of a start that failed
  int64_t pid = 0;
  std::string address;  // in its network; empty on the host's
};

struct ContainerEvent {
  std::string action;  // "die", "oom", "destroy", "pause", …
  TaskLabels task;
  std::string time;  // "SECONDS.NANOSECONDS", for `since`
};

struct Versions {
  std::string api;      // newest that the daemon speaks
  std::string min_api;  // oldest
  std::string engine;
};

struct Machine {
  double cpus = 0;
  int64_t memory_bytes = 0;
  bool live_restore = false;
};

Result<Versions> DecodeVersions(std::string_view text);
Result<Machine> DecodeMachine(std::string_view text);
// Only ours; others, and what has damaged labels, is left out.
Result<std::vector<ContainerSummary>> DecodeContainers(std::string_view text);
Result<ContainerState> DecodeContainer(std::string_view text);
// Nothing: an event that is not about a container of ours.
Result<std::optional<ContainerEvent>> DecodeEvent(std::string_view line);
// The daemon's own words of an error, {"message": …}; the text itself if it is none.
std::string DecodeError(std::string_view text);
// The field "Id" of what was made.
// Config.Entrypoint and Config.Cmd of an image.
Result<EntryPoint> DecodeEntryPoint(std::string_view text);
Result<std::string> DecodeId(std::string_view text);
// Their ids.
Result<std::vector<std::string>> DecodeNetworks(std::string_view text);

// One line of what a pull tells. `error` is not empty if it failed.
struct PullProgress {
  std::string status;
  std::string error;
};
Result<PullProgress> DecodePullProgress(std::string_view line);

// Cuts a stream into lines; a line over `limit` is an error. Plain value.
class LineCutter {
 public:
  explicit LineCutter(size_t limit) : limit_(limit) {}
  // Appends the lines that are whole now.
  Status Feed(std::string_view bytes, std::vector<std::string>* lines);

 private:
  size_t limit_;
  std::string rest_;
};

// Takes the frames of a container's output apart (8 bytes of head: stream, 0, 0, 0, length as
// big-endian 32 bits). Plain value.
class FrameCutter {
 public:
  struct Frame {
    int stream = 1;  // 1: standard output, 2: standard error
    std::string bytes;
  };
  // DataLoss for a head that is none, or a frame over 16 MiB.
  Status Feed(std::string_view bytes, std::vector<Frame>* frames);

 private:
  std::string rest_;
};

// "1.41" before "1.9"? No: numbers. Negative, 0, positive; a version that is none counts as 0.
int CompareVersions(std::string_view a, std::string_view b);

}  // namespace shoal::engine::docker
