// Decoders of the Docker daemon's responses. Input is untrusted: bounded and checked. Used by
// docker_api.cc; fuzzed by tests/fuzz/docker_fuzz.cc.
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

// Labels of all objects that Shoal creates.
inline constexpr const char* kJobLabel = "shoal.dev/job";
inline constexpr const char* kRoleLabel = "shoal.dev/role";
inline constexpr const char* kIndexLabel = "shoal.dev/index";
inline constexpr const char* kIncarnationLabel = "shoal.dev/incarnation";
inline constexpr const char* kOrderLabel = "shoal.dev/order";  // among the job's tasks
inline constexpr const char* kGpuLabel = "shoal.dev/gpus";     // uuids, separated by commas

// The task of a container, from its labels.
struct TaskLabels {
  std::string job;
  std::string role;
  int index = 0;
  int incarnation = 0;
  int order = 0;
};

// An entry of GET /containers/json.
struct ContainerSummary {
  std::string id;
  TaskLabels task;
  bool running = false;  // paused or not
  bool paused = false;
  int exit_code = -1;  // -1: running, never started, or unknown
};

// Result of GET /containers/ID/json.
struct ContainerState {
  std::string id;
  std::optional<TaskLabels> task;  // nothing: not created by Shoal
  bool running = false;
  bool out_of_memory = false;
  int exit_code = -1;
  std::string error;  // the daemon's message if the start failed
  int64_t pid = 0;
  std::string address;  // in the job's network; empty on the host's network
};

// An entry of the event stream, GET /events.
struct ContainerEvent {
  std::string action;  // "die", "oom", "destroy", "pause", …
  TaskLabels task;
  std::string time;  // "SECONDS.NANOSECONDS", for `since`
};

// Result of GET /version.
struct Versions {
  std::string api;      // newest API version of the daemon
  std::string min_api;  // oldest
  std::string engine;
};

// Result of GET /info.
struct Machine {
  double cpus = 0;
  int64_t memory_bytes = 0;
  bool live_restore = false;
};

Result<Versions> DecodeVersions(std::string_view text);
Result<Machine> DecodeMachine(std::string_view text);
// Shoal's containers; others and those with invalid labels are left out.
Result<std::vector<ContainerSummary>> DecodeContainers(std::string_view text);
Result<ContainerState> DecodeContainer(std::string_view text);
// Nothing for an event that is not about one of Shoal's containers.
Result<std::optional<ContainerEvent>> DecodeEvent(std::string_view line);
// The daemon's error message, {"message": …}; the text itself if it is not such JSON.
std::string DecodeError(std::string_view text);
// Config.Entrypoint and Config.Cmd of an image.
Result<EntryPoint> DecodeEntryPoint(std::string_view text);
// The field "Id" of a created object.
Result<std::string> DecodeId(std::string_view text);
// Ids of networks.
Result<std::vector<std::string>> DecodeNetworks(std::string_view text);

// One line of a pull's progress. `error` is not empty if the pull failed.
struct PullProgress {
  std::string status;
  std::string error;
};
Result<PullProgress> DecodePullProgress(std::string_view line);

// Cuts a stream into lines; a line over `limit` is an error. Plain value.
class LineCutter {
 public:
  explicit LineCutter(size_t limit) : limit_(limit) {}
  // Appends the complete lines.
  Status Feed(std::string_view bytes, std::vector<std::string>* lines);

 private:
  size_t limit_;
  std::string rest_;
};

// Parses the frames of a container's output (8-byte header: stream, 0, 0, 0, big-endian 32-bit
// length). Plain value.
class FrameCutter {
 public:
  struct Frame {
    int stream = 1;  // 1: standard output, 2: standard error
    std::string bytes;
  };
  // DataLoss for an invalid header or a frame over 16 MiB.
  Status Feed(std::string_view bytes, std::vector<Frame>* frames);

 private:
  std::string rest_;
};

// Compares versions numerically ("1.9" < "1.41"): negative, 0 or positive. Invalid text counts as
// 0.
int CompareVersions(std::string_view a, std::string_view b);

}  // namespace shoal::engine::docker
