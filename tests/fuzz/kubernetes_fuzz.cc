// Fuzz entry: what an API server, a kubeconfig, an exec plugin and a peer of the relay say. The
// first byte chooses the decoder; nothing that is decoded may break a promise of decode.h.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/base64.h"
#include "engine/kubernetes/decode.h"
#include "engine/kubernetes/job_state.h"
#include "engine/kubernetes/kube_config.h"
#include "engine/kubernetes/kube_exec.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/pod_relay.h"
#include "engine/kubernetes/pod_volumes.h"
#include "engine/kubernetes/websocket_frames.h"
#include "pieces_check.h"

using namespace shoal;                      // NOLINT
using namespace shoal::engine::kubernetes;  // NOLINT

namespace {

void CheckPod(const PodView& pod) {
  if (pod.index < 0 || pod.failures < 0 || pod.exit_code < -1 || pod.exit_code > 255) std::abort();
  if (pod.name.find('/') != std::string::npos || pod.role.find('/') != std::string::npos)
    std::abort();
  const auto bad = [](const std::string& text) { return text.find('\n') != std::string::npos; };
  if (bad(pod.waits) || bad(pod.end_reason)) std::abort();
}

void CheckPods(std::string_view text) {
  const auto object = ParseJsonObject(text);
  if (!object.ok()) return;
  const auto pods = DecodePods(*object);
  JobState state("job", engine::RestartRules());
  std::vector<engine::TaskEvent> events;
  for (const PodView& pod : pods.value_or({}).items) {
    CheckPod(pod);
    state.UpdatePod(
        pod, TimePoint{}, [] { return std::string(); }, &events);
    state.RemovePod(pod, TimePoint{}, &events);
  }
  if (state.AnyAlive()) std::abort();
  const auto jobs = DecodeJobs(*object);
  for (const JobView& job : jobs.value_or({}).items) {
    if (job.completions < 0 || job.single < -1) std::abort();
  }
  (void)DecodeFailedCreates(*object);
  const engine::Capacity capacity = DecodeNodes(*object, "nvidia.com/gpu");
  if (capacity.memory_bytes < 0 || capacity.gpu < 0) std::abort();
}

void CheckFrames(std::string_view text) {
  const auto read =
      fuzz::FeedTwice<WebSocketReader::Message>(text, WebSocketReader(), WebSocketReader());
  if (read.whole_fine != read.pieces_fine) std::abort();
  if (read.whole_fine && read.whole.size() != read.pieces.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  switch (bytes[0] % 8) {
    case 0: {
      const auto event = DecodeWatchLine(text);
      if (event.ok() && event->pod) CheckPod(*event->pod);
      break;
    }
    case 1:
      CheckPods(text);
      break;
    case 2:
      (void)ReadKubeConfig(text, "/nowhere/config", "");
      break;
    case 3:
      (void)DecodeExecCredential(text);
      (void)DecodeExecStatus(text);
      if (DecodeStatus(text, 500).size() > 2000) std::abort();
      break;
    case 4: {
      const auto head = RewriteHead(text, "/p", "h", "Bearer x");
      if (head.ok() && !head->starts_with("GET /p/")) std::abort();
      break;
    }
    case 5:
      (void)ParsePodVolume(std::string(text));
      (void)ReadQuantity(text);
      (void)DecodeBase64(text);
      break;
    default:
      CheckFrames(text);
  }
  return 0;
}
