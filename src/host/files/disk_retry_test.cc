#include "host/files/disk_retry.h"

#include <gtest/gtest.h>

namespace shoal::host {
namespace {

TEST(DiskRetry, AnErrorThatPassesIsNotSeen) {
  for (const Code code : {Code::kResourceExhausted, Code::kUnknown}) {
    int calls = 0;
    const Status done = RetryOnDiskError(
        [&] { return ++calls == 1 ? Status(code, "the disk is full, or fails") : Status::Ok(); });
    EXPECT_TRUE(done.ok()) << done.message();
    EXPECT_EQ(calls, 2);
  }
}

TEST(DiskRetry, OtherErrorsAndThoseThatLastAreReturned) {
  int calls = 0;
  const auto missing = RetryOnDiskError([&]() -> Result<int> {
    ++calls;
    return NotFound("no such file");
  });
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  const auto full = [&] {
    ++calls;
    return Status(Code::kResourceExhausted, "the disk is full");
  };
  EXPECT_EQ(RetryOnDiskError(full, DeviceErrorTimeout).code(), Code::kResourceExhausted);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace shoal::host
