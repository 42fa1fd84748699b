// What is queued for a socket arrives in order, however little the kernel takes at a time.
#include "ps/transport/send_queue.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "ps/transport/socket.h"

namespace shoal::ps {
namespace {

struct Ends {
  UniqueFd near, far;
  Ends() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    near.Reset(ends[0]);
    far.Reset(ends[1]);
    const int few = 4096;  // the kernel makes at least a few KB of it
    ::setsockopt(near.get(), SOL_SOCKET, SO_SNDBUF, &few, sizeof few);
  }
  void ReadAll(std::string* to) const {
    char bytes[4096];
    for (long got; (got = ReceiveSome(far.get(), bytes, sizeof bytes)) > 0;) {
      to->append(bytes, static_cast<size_t>(got));
    }
  }
};

TEST(SendQueue, OwnAndReferredBytesArriveInOrder) {
  std::mt19937 random(5);
  Ends ends;
  SendQueue queue;
  std::string wanted, got;
  std::vector<std::string> referred(300);  // more pieces than go into one call
  for (std::string& bytes : referred) {
    bytes.resize(random() % 700);
    for (char& byte : bytes) byte = static_cast<char>(random());
    const size_t own = random() % 3 * 40;
    for (size_t i = 0; i < own; ++i) queue.Reserve(own)[i] = static_cast<char>(wanted.size() + i);
    wanted.append(queue.Reserve(own), own);
    queue.Commit(own);
    queue.Refer(bytes.data(), bytes.size());
    wanted += bytes;
    if (random() % 4 == 0) {
      queue.Append("tail", 4);
      wanted += "tail";
    }
    if (random() % 30 == 0) queue.Send(ends.near.get());  // some of it
    ASSERT_EQ(queue.empty(), queue.size() == 0);
  }
  bool whole = false;
  int refused = 0;
  while (!whole) {
    whole = queue.Send(ends.near.get());
    refused += !whole;
    ends.ReadAll(&got);
  }
  EXPECT_TRUE(queue.empty());
  EXPECT_GT(refused, 3) << "the test's socket takes everything at once";
  EXPECT_TRUE(got == wanted) << got.size() << " bytes, expected " << wanted.size();
}

TEST(SendQueue, ABrokenConnectionDropsWhatIsQueued) {
  Ends ends;
  SendQueue queue;
  queue.Append("abc", 3);
  queue.Refer("def", 3);
  ends.far.Reset();
  EXPECT_TRUE(queue.Send(ends.near.get()));
  EXPECT_TRUE(queue.empty());
  queue.Append("ghi", 3);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(std::string(queue.data(), 3), "ghi");
  queue.Clear();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace shoal::ps
