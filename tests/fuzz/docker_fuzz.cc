// Fuzz entry: what a Docker daemon says. The first byte chooses the decoder; nothing that is
// decoded may break a promise of decode.h.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/docker/decode.h"
#include "pieces_check.h"

using namespace shoal::engine::docker;  // NOLINT

namespace {

void CheckId(const std::string& id) {
  if (id.empty() || id.find_first_not_of("0123456789abcdef") != std::string::npos) std::abort();
}

void CheckTask(const TaskLabels& task) {
  if (task.index < 0 || task.incarnation < 0 || task.order < 0) std::abort();
  if (task.job.find('/') != std::string::npos || task.role.find('/') != std::string::npos)
    std::abort();
}

void CheckStreams(std::string_view text) {
  const LineCutter fresh(1 << 16);
  const auto read = shoal::fuzz::FeedTwice<std::string>(text, fresh, fresh);
  if (read.whole_fine && read.pieces_fine && read.whole != read.pieces) std::abort();
  FrameCutter cutter;
  std::vector<FrameCutter::Frame> frames;
  size_t bytes = 0;
  if (cutter.Feed(text, &frames).ok()) {
    for (const FrameCutter::Frame& frame : frames) bytes += frame.bytes.size();
    if (bytes > text.size()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  switch (bytes[0] % 8) {
    case 0: {
      const auto event = DecodeEvent(text);
      if (event.ok() && *event) CheckTask((*event)->task);
      break;
    }
    case 1: {
      const auto containers = DecodeContainers(text);
      for (const ContainerSummary& one : containers.value_or({})) {
        CheckId(one.id);
        CheckTask(one.task);
      }
      break;
    }
    case 2: {
      const auto container = DecodeContainer(text);
      if (container.ok()) CheckId(container->id);
      if (container.ok() && (container->exit_code < -1 || container->exit_code > 255)) std::abort();
      break;
    }
    case 3:
      (void)DecodeVersions(text);
      (void)DecodeMachine(text);
      break;
    case 4:
      (void)DecodePullProgress(text);
      if (DecodeError(text).size() > 2000) std::abort();
      break;
    case 5: {
      (void)DecodeNetworks(text);
      const auto ids = DecodeId(text);
      if (ids.ok()) CheckId(*ids);
      break;
    }
    default:
      CheckStreams(text);
  }
  return 0;
}
