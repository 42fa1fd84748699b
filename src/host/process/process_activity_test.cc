// What goes over connections, and what processes wait for.
#include "host/process/process_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "host/process/process_usage.h"

namespace shoal::host {
namespace {

using testing::HasSubstr;

struct Connected {
  UniqueFd here;
  UniqueFd there;
};

Connected Connect() {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), any, size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), any, &size), 0);
  Connected pair;
  pair.here.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(pair.here.get(), any, size), 0);
  pair.there.Reset(::accept(listener.get(), nullptr, nullptr));
  return pair;
}

// Until the connection's other end has acknowledged and read what `bytes` say.
int64_t ReadAll(const Connected& pair, size_t bytes) {
  std::string got(bytes, 0);
  return ::recv(pair.there.get(), got.data(), bytes, MSG_WAITALL);
}

TEST(NetworkMeter, CountsWhatGoesOverTheProcessesConnections) {
  NetworkMeter meter;
  const Connected pair = Connect();
  const auto first = meter.Sample({::getpid()});
  if (!first.ok()) GTEST_SKIP() << first.status().message();
  EXPECT_EQ(*first, 0);
  ASSERT_TRUE(WriteAll(pair.here.get(), std::string(10'000, 'x')).ok());
  ASSERT_EQ(ReadAll(pair, 10'000), 10'000);
  const auto second = meter.Sample({::getpid()});
  ASSERT_TRUE(second.ok());
  // Both ends are ours: received here, acknowledged there (which the kernel may still owe).
  EXPECT_GE(*second, 10'000);
  EXPECT_LE(*second, 21'000);
  // A connection that is new counts from its begin.
  const Connected later = Connect();
  ASSERT_TRUE(WriteAll(later.here.get(), std::string(5'000, 'x')).ok());
  ASSERT_EQ(ReadAll(later, 5'000), 5'000);
  EXPECT_GE(*meter.Sample({::getpid()}), *second + 5'000);
}

TEST(TcpConnections, TellWhatLiesUnread) {
  const Connected pair = Connect();
  ASSERT_TRUE(WriteAll(pair.here.get(), "hello").ok());
  pollfd readable{pair.there.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&readable, 1, 5000), 1);
  const auto found = TcpConnectionsOf({::getpid()});
  if (!found.ok()) GTEST_SKIP() << found.status().message();
  int64_t unread = 0;
  for (const TcpConnection& one : *found) {
    unread += one.unread;
    EXPECT_THAT(one.local, HasSubstr("127.0.0.1:"));
    EXPECT_THAT(one.peer, HasSubstr("127.0.0.1:"));
    EXPECT_EQ(one.state, "established");
  }
  EXPECT_EQ(unread, 5);
  EXPECT_EQ(found->size(), 2u);
  // A process that holds none has none, whatever others hold.
  EXPECT_TRUE(TcpConnectionsOf({})->empty());
}

TEST(TraceProcesses, SaysWhatThreadsWaitFor) {
  std::mutex mu;
  std::condition_variable wake;
  bool stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::unique_lock lock(mu);
      wake.wait(lock, [&] { return stop; });
    });
  }
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  const auto traces = TraceProcesses({::getpid(), child, 0x3fffffff});
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  {
    const std::lock_guard lock(mu);
    stop = true;
  }
  wake.notify_all();
  for (std::thread& one : threads) one.join();
  ASSERT_EQ(traces.size(), 2u);  // who has ended is left out
  EXPECT_EQ(traces[0].pid, ::getpid());
  EXPECT_EQ(traces[0].name, "host_test");
  EXPECT_EQ(traces[0].threads, 4);
  int counted = 0;
  for (const ThreadWait& one : traces[0].waits) counted += one.threads;
  EXPECT_EQ(counted, 4);
  EXPECT_EQ(traces[1].state, 'T');
  ASSERT_EQ(traces[1].waits.size(), 1u);
  EXPECT_NE(traces[1].waits[0].where, "running");
}

}  // namespace
}  // namespace shoal::host
