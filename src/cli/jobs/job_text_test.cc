#include "cli/jobs/job_text.h"

#include <gtest/gtest.h>

namespace shoal::cli {
namespace {

TEST(Table, ACellIsOneLine) {
  EXPECT_EQ(Table({{"TASK", "FILE"}, {"worker-0", "a\nworker-1  b\r"}}),
            "TASK      FILE\nworker-0  a\\x0aworker-1  b\\x0d\n");
}

}  // namespace
}  // namespace shoal::cli
