// The engines that need nothing but this machine.
#include "contract/harness.h"

namespace shoal::engine {

std::vector<EngineUnderTest> EnginesUnderTest() {
  return {{"local", MakeLocalHarness}, {"fake", MakeFakeHarness}};
}

}  // namespace shoal::engine
