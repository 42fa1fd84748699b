#include "contract/harness.h"
#include "contract/shell_tasks.h"
#include "engine/local/local_engine.h"

namespace shoal::engine {
namespace {

class LocalHarness final : public ShellHarness {
 public:
  LocalHarness() : ShellHarness(std::chrono::seconds(20), false) {}

 private:
  Result<std::unique_ptr<Engine>> Make() override {
    LocalEngineOptions options;
    options.restart.first = std::chrono::milliseconds(5);
    return MakeLocalEngine(options);
  }
};

}  // namespace

std::unique_ptr<Harness> MakeLocalHarness() { return MakeHarness<LocalHarness>(); }

}  // namespace shoal::engine
