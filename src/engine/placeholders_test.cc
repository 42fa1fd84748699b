#include "engine/placeholders.h"

#include <gtest/gtest.h>

namespace shoal::engine {
namespace {

TEST(ExpandPlaceholders, ReplacesWhatIsNamedAndNothingElse) {
  const PlaceholderValues values{{kPortPlaceholder, "7000"}, {kHostPlaceholder, "{port}"}};
  EXPECT_EQ(ExpandPlaceholders("0.0.0.0:{port}", values), "0.0.0.0:7000");
  EXPECT_EQ(ExpandPlaceholders("{port}{port}", values), "70007000");
  EXPECT_EQ(ExpandPlaceholders("{host}", values), "{port}")
      << "what was filled in is not looked into";
  EXPECT_EQ(ExpandPlaceholders("{dir} {{port} {", values), "{dir} {7000 {");
  EXPECT_EQ(ExpandPlaceholders("", values), "");
  EXPECT_EQ(ExpandPlaceholders("{\"a\": {}}", values), "{\"a\": {}}");
}

}  // namespace
}  // namespace shoal::engine
