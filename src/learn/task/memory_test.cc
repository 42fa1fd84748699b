#include "learn/task/memory.h"

#include <gtest/gtest.h>

namespace shoal::learn {
namespace {

TEST(Memory, AModelThatDoesNotFitIsOneSentence) {
  EXPECT_TRUE(CheckMemory(100, 100, "use less").ok());
  const Status status = CheckMemory(uint64_t{3} << 30, uint64_t{512} << 20, "use a smaller dim");
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "the model takes about 3.0 GiB of this worker's memory, expected at most the 512.0 MiB "
            "that are free; use a smaller dim, or give the worker more memory");
}

TEST(Memory, SomeIsFree) {
  EXPECT_GT(FreeMemory(), 1u << 20);
  EXPECT_LT(FreeMemory(), uint64_t{1} << 50);
  EXPECT_GT(FreeAddressSpace(), 1u << 20);
}

}  // namespace
}  // namespace shoal::learn
