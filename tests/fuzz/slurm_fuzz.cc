// Fuzz entry: what Slurm's commands print, and what agents and engines write for each other. The
// first byte chooses. Nothing crashes; what is read can be written and read again to the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/agent/desired_state.h"
#include "engine/slurm/batch_script.h"
#include "engine/slurm/cell_placement.h"
#include "engine/slurm/grant.h"
#include "engine/slurm/node_address.h"
#include "engine/slurm/slurm_commands.h"
#include "engine/slurm/step_protocol.h"

namespace {

namespace slurm = shoal::engine::slurm;

void Require(bool holds) {
  if (!holds) std::abort();
}

void TryCommands(std::string_view text) {
  for (const slurm::QueuedJob& job : slurm::ParseQueue(text)) {
    Require(job.number > 0 && !job.state.empty());
    Require(slurm::DescribeWait(job).find('\n') == std::string::npos);
    (void)slurm::JobIdOfComment(job.comment);
  }
  const shoal::engine::Capacity capacity = slurm::ParseNodes(text);
  Require(capacity.cpu >= 0 && capacity.memory_bytes >= 0 && capacity.gpu >= 0);
  const auto ended = slurm::ParseEndedJob(text);
  if (ended.ok()) Require(!slurm::DescribeEnd(*ended, "/job").empty());
  const slurm::PortRange ports = slurm::ParseSrunPorts(text);
  Require(ports.first >= 0 && ports.first <= ports.last && ports.last <= UINT16_MAX);
  if (const auto file = slurm::SrunPortsOfFile(text)) Require(file->first <= file->last);
  if (const auto grant = slurm::ParseGrant(text); grant.ok())
    Require(grant->number > 0 && grant->salloc > 0 && !grant->nodes.empty());
  if (const auto left = slurm::ParseTimeLeft(text)) Require(left->count() >= 0);
  (void)slurm::NodeAddrOf(std::string(text));
  (void)slurm::FailedNodes(text);
}

void TryLists(std::string_view text) {
  const auto hosts = slurm::ExpandHosts(text);
  if (hosts.ok()) Require(hosts->size() <= 100'000);
  const auto counts = slurm::ExpandCounts(text);
  if (counts.ok()) Require(counts->size() <= 100'000);
}

void TryRecords(std::string_view text) {
  if (const auto orders = shoal::engine::DecodeDesiredState(text); orders.ok()) {
    const std::string written = shoal::engine::EncodeDesiredState(*orders);
    const auto again = shoal::engine::DecodeDesiredState(written);
    Require(again.ok() && shoal::engine::EncodeDesiredState(*again) == written);
  }
  if (const auto line = shoal::engine::DecodeAgentEvent(text); line.ok()) {
    const std::string written = shoal::engine::EncodeAgentEvent(*line);
    const auto again =
        shoal::engine::DecodeAgentEvent(std::string_view(written).substr(0, written.size() - 1));
    Require(again.ok() && shoal::engine::EncodeAgentEvent(*again) == written);
  }
  if (const auto line = slurm::DecodeStepEvent(text); line.ok())
    Require(slurm::DecodeStepEvent(slurm::EncodeStepEvent(*line)).ok());
  (void)slurm::DecodeStepSignal(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if (bytes[0] % 3 == 0) TryCommands(text);
  if (bytes[0] % 3 == 1) TryLists(text);
  if (bytes[0] % 3 == 2) TryRecords(text);
  return 0;
}
