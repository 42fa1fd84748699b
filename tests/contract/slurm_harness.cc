// Tasks on a real Slurm of three nodes on this machine: tests/cluster/slurm.sh starts it.
#include "contract/harness.h"
#include "contract/shell_harness.h"
#include "engine/slurm/slurm_engine.h"

namespace shoal::engine {
namespace {

class SlurmHarness : public OptionsHarness<SlurmEngineOptions, MakeSlurmEngine> {
 public:
  SlurmHarness() : OptionsHarness(std::chrono::seconds(60), false) {}

 private:
  void Adjust(SlurmEngineOptions* options) override { options->program = HelperProgram(); }
};

// Jobs that end with their controller: allocated by salloc on this machine if resources are free.
class AttendedHarness final : public SlurmHarness {
 public:
  void Prepare(DesiredJob* job) override { job->attended = true; }
};

// Jobs whose tasks are in the second of two components of their allocation (ADR 89): a role that
// may have a task one day has the first.
class HeterogeneousHarness final : public SlurmHarness {
 public:
  void Prepare(DesiredJob* job) override {
    job::SlurmSettings first;
    first.partition = "small";
    job->slurm.partition = "big";
    job->max_tasks["aide"] = 1;
    job->slurm_settings = {{"aide", first}, {"worker", {}}};
  }
};

}  // namespace

std::vector<EngineUnderTest> EnginesUnderTest() {
  return {{"slurm", MakeHarness<SlurmHarness>},
          {"slurm_attended", MakeHarness<AttendedHarness>, "slurm"},
          {"slurm_heterogeneous", MakeHarness<HeterogeneousHarness>, "slurm"}};
}

}  // namespace shoal::engine
