#include "base/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/file.h"

namespace shoal {
namespace {

TEST(OutputStream, KeepsTheFirstErrorAndWritesNothingMore) {
  const auto full = OpenFile("/dev/full", O_WRONLY);
  ASSERT_TRUE(full.ok());
  OutputStream out(full->get());
  EXPECT_FALSE(out.Write("text"));
  EXPECT_EQ(out.status().code(), Code::kResourceExhausted);
  EXPECT_FALSE(out.reader_gone());
  EXPECT_FALSE(out.Write("more"));
  OutputStream closed(-1);
  EXPECT_FALSE(closed.Write("text"));
  EXPECT_FALSE(closed.status().ok());
}

TEST(OutputStream, AReaderThatHasGoneIsNoError) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd writer(ends[1]);
  ::close(ends[0]);
  OutputStream out(writer.get());
  EXPECT_FALSE(out.Write("text"));
  EXPECT_TRUE(out.reader_gone());
  EXPECT_TRUE(out.status().ok());
}

TEST(OutputStream, WaitsWhereTheDescriptorIsNonBlocking) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  UniqueFd writer(ends[1]);
  ASSERT_EQ(::fcntl(ends[0], F_SETFL, 0), 0);
  const std::string text(1 << 20, 'x');
  std::string got;
  std::thread reader([&] {
    char block[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], block, sizeof block)) > 0;)
      got.append(block, static_cast<size_t>(n));
    ::close(ends[0]);
  });
  OutputStream out(writer.get());
  EXPECT_TRUE(out.Write(text));
  writer.Reset();
  reader.join();
  EXPECT_EQ(got.size(), text.size());
}

}  // namespace
}  // namespace shoal
