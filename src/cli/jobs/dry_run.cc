#include "cli/jobs/dry_run.h"

#include <string>

#include "base/json.h"
#include "cli/jobs/job_text.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

std::string TrialText(const json::object& trial) {
  std::string text;
  if (GetBoolOr(trial, "starts", false)) {
    text = "would start now on " + GetStringOr(trial, "flavor", "");
    const int64_t tasks = GetIntOr(trial, "tasks", 1);
    if (tasks > 1) text += " with " + std::to_string(tasks) + " tasks of its elastic role";
    if (GetBoolOr(trial, "preempts", false)) text += ", taking resources from other jobs";
    return text + "\n";
  }
  const bool refused = GetBoolOr(trial, "refused", false);
  text =
      (refused ? "would be refused: " : "would wait: ") + GetStringOr(trial, "reason", "") + "\n";
  if (const std::string at = GetStringOr(trial, "expected_start", ""); !at.empty()) {
    const double confidence = GetDoubleOr(trial, "confidence", 1);
    text += "It would start at " + at;
    text += confidence >= 1
                ? " at the latest\n"
                : " or so (" + std::to_string(static_cast<int>(confidence * 100)) + " % sure)\n";
  }
  const json::value* const changes = trial.if_contains("changes");
  if (changes == nullptr || !changes->is_array() || changes->get_array().empty()) return text;
  text += "It would start now:\n";
  for (const json::value& change : changes->get_array())
    if (change.is_string()) text += "  " + std::string(change.get_string()) + "\n";
  return text;
}

}  // namespace

int DryRun(const Context& context, controller::Jobs* jobs, const controller::NewRun& run) {
  const auto queues = jobs->OpenQueues();
  if (!queues.ok()) return PrintError(queues.status());
  const Result<json::object> trial = (*queues)->Try(run);
  if (!trial.ok()) return PrintError(trial.status());
  const int printed = PrintResult(context.json ? JsonLine(*trial) : TrialText(*trial));
  return printed == 0 && GetBoolOr(*trial, "refused", false) ? 1 : printed;
}

}  // namespace shoal::cli
