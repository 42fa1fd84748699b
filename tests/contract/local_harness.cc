#include "contract/harness.h"
#include "contract/shell_harness.h"
#include "engine/local/local_engine.h"
#include "engine/process/local_host.h"

namespace shoal::engine {
namespace {

class LocalHarness final : public OptionsHarness<LocalEngineOptions, MakeLocalEngine> {
 public:
  LocalHarness() : OptionsHarness(std::chrono::seconds(20), false) {}
  std::vector<std::string> Hosts() override { return {LocalHostName()}; }
};

}  // namespace

std::unique_ptr<Harness> MakeLocalHarness() { return MakeHarness<LocalHarness>(); }

}  // namespace shoal::engine
