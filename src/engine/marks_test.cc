#include "engine/marks.h"

#include <gtest/gtest.h>

namespace shoal::engine {
namespace {

TEST(FillMarks, ReplacesWhatIsNamedAndNothingElse) {
  const MarkValues values{{kPortMark, "7000"}, {kHostMark, "{port}"}};
  EXPECT_EQ(FillMarks("0.0.0.0:{port}", values), "0.0.0.0:7000");
  EXPECT_EQ(FillMarks("{port}{port}", values), "70007000");
  EXPECT_EQ(FillMarks("{host}", values), "{port}") << "what was filled in is not looked into";
  EXPECT_EQ(FillMarks("{dir} {{port} {", values), "{dir} {7000 {");
  EXPECT_EQ(FillMarks("", values), "");
  EXPECT_EQ(FillMarks("{\"a\": {}}", values), "{\"a\": {}}");
}

}  // namespace
}  // namespace shoal::engine
