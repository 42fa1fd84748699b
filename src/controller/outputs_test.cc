#include "controller/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MissingOutputs, NamesThoseThatAreNotOnThisMachine) {
  const TempDir dir = std::move(*TempDir::Create());
  const std::string none = dir.path() / "none";
  EXPECT_THAT(MissingOutputs({{"model", dir.path()}, {"plots", none}}),
              ElementsAre(HasSubstr("outputs.plots: " + none + " does not exist on this machine")));
  EXPECT_THAT(MissingOutputs({{"model", "/dev/null/below"}}),
              ElementsAre(HasSubstr("/dev/null/below")));
}

}  // namespace
}  // namespace shoal::controller
