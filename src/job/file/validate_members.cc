// Checks the sections `matrix` and `sweep`, before the references to their values are replaced.
#include "job/file/decode.h"
#include "job/spec/members.h"

namespace shoal::job {
namespace {

// A member is named NAME-INDEX.
void CheckSweep(const JobDraft& draft, Errors* errors) {
  const Sweep& sweep = draft.job.triggers.sweep;
  const auto wrong = [&](const std::string& path, const std::string& sentence) {
    errors->Add(draft.LocationOf(path), path, sentence);
  };
  if (sweep.objective.empty())
    return wrong("sweep",
                 "got no objective, expected the name of a reported number, such as "
                 "objective: loss");
  if (sweep.parameters.empty())
    return wrong("sweep",
                 "got no parameters, expected some, such as parameters: {lr: "
                 "{log_uniform: [1e-4, 0.1]}}");
  const bool grid = sweep.search == SweepSearch::kGrid;
  if (!grid && sweep.trials == 0)
    wrong("sweep", "got no number of trials, expected one, such as trials: 20");
  for (const SweepParameter& one : sweep.parameters) {
    const bool ranged = one.kind != ParameterKind::kChoice;
    if (grid && ranged && one.steps == 0)
      wrong("sweep.parameters", "got a range without steps for " + one.name +
                                    ", expected {steps: N} beside it, since search is grid");
    if ((!grid || !ranged) && one.steps > 0)
      wrong("sweep.parameters",
            "got steps for " + one.name + ", expected them with a range and search: grid only");
  }
  if (draft.Has("sweep.stop") && sweep.stop.first == 0 && !errors->At("sweep.stop.first"))
    wrong("sweep.stop", "got no first rung, expected one, such as first: 10");
}

}  // namespace

void ValidateMembers(const JobDraft& draft, Errors* errors) {
  const bool matrix = draft.Has("matrix");
  const bool sweep = draft.Has("sweep");
  if (!matrix && !sweep) return;
  if (matrix && sweep) {
    errors->Add(draft.LocationOf("sweep"), "sweep",
                "got a sweep beside a matrix, expected one of the two; parameters of the matrix "
                "can be choices of the sweep");
    return;
  }
  if (sweep) CheckSweep(draft, errors);
  if (!errors->empty()) return;
  // Drawn members are as many as there are trials.
  if (sweep && draft.job.triggers.sweep.search == SweepSearch::kRandom) return;
  const auto members = MembersOf(draft.job.triggers);
  const std::string path = sweep ? "sweep" : "matrix";
  if (!members.ok()) errors->Add(draft.LocationOf(path), path, members.status().message());
}

}  // namespace shoal::job
