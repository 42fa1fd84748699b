// Fuzz entry: what Marathon, Metronome and Mesos answer, and Marathon's stream of events in pieces.
// Nothing crashes; what people read of it is one line.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/marathon/decode.h"
#include "engine/marathon/metronome_spec.h"

namespace {

namespace marathon = shoal::engine::marathon;

void Require(bool holds) {
  if (!holds) std::abort();
}

void RequireLine(const std::string& text) {
  Require(text.find('\n') == std::string::npos && text.find('\0') == std::string::npos);
}

void TryAnswers(std::string_view text) {
  if (const auto apps = marathon::DecodeApps(text); apps.ok()) {
    for (const marathon::App& app : *apps) {
      Require(!app.id.empty() && app.instances >= 0);
      RequireLine(app.last_failure.message);
      for (const marathon::MesosTask& task : app.tasks) RequireLine(task.id);
    }
  }
  if (const auto queue = marathon::DecodeQueue(text); queue.ok()) {
    for (const marathon::PendingApp& one : *queue) RequireLine(one.reason);
  }
  if (const auto numbers = marathon::DecodeClusterResources(text); numbers.ok())
    Require(numbers->cpus >= 0 && numbers->memory_mb >= 0 && numbers->gpus >= 0);
  if (const auto jobs = marathon::DecodeMetronomeJobs(text); jobs.ok()) {
    for (const marathon::MetronomeJob& job : *jobs) {
      RequireLine(job.status.name + job.status.cron + job.status.time_zone + job.status.next);
      for (const std::string& run : job.status.active) Require(run.find('/') == std::string::npos);
    }
  }
  (void)marathon::DecodeMetronomeJob(text);
  (void)marathon::DecodeMetronomeRun(text);
  for (const std::string& id : marathon::DecodeConflict(text)) RequireLine(id);
  RequireLine(marathon::DecodeErrorMessage(text));
  RequireLine(marathon::DecodeDeployment(text));
  (void)marathon::DecodeDeployments(text);
  (void)marathon::DecodeMesosUrl(text);
}

std::vector<marathon::Event> Cut(std::string_view text, size_t piece) {
  marathon::ServerSentEventParser cutter;
  std::vector<marathon::Event> events;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    if (!cutter.Feed(text.substr(0, piece), &events).ok()) break;
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    TryAnswers(text);
    return 0;
  }
  // However it is cut, the same events come of it.
  const auto whole = Cut(text, text.size() + 1);
  const auto pieces = Cut(text, data[0] / 2 + 1);
  Require(whole.size() == pieces.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    Require(whole[i].task == pieces[i].task && whole[i].message == pieces[i].message);
    RequireLine(whole[i].message);
  }
  return 0;
}
