// The engines that need no cluster or daemon.
#include "contract/harness.h"

namespace shoal::engine {

std::vector<EngineUnderTest> EnginesUnderTest() {
  return {{"local", MakeLocalHarness}, {"fake", MakeFakeHarness}};
}

}  // namespace shoal::engine
