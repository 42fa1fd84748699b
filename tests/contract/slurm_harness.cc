// Tasks on a real Slurm of three nodes on this machine: tests/cluster/slurm.sh starts it.
#include <filesystem>

#include "contract/harness.h"
#include "contract/shell_tasks.h"
#include "engine/slurm/slurm_engine.h"

namespace shoal::engine {
namespace {

class SlurmHarness final : public ShellHarness {
 public:
  SlurmHarness() : ShellHarness(std::chrono::seconds(60), false) {}

 private:
  Result<std::unique_ptr<Engine>> Make() override {
    SlurmEngineOptions options;
    options.program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "slurm_helper";
    options.restart.first = std::chrono::milliseconds(5);
    return MakeSlurmEngine(options);
  }
};

}  // namespace

std::vector<EngineUnderTest> EnginesUnderTest() { return {{"slurm", MakeHarness<SlurmHarness>}}; }

}  // namespace shoal::engine
