// Leases: exclusive among themselves, open to servers that set one of the two options, and who
// listens.
#include "host/network/port_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "base/id.h"

namespace shoal::host {
namespace {

using testing::ElementsAre;

PortLease TakeAny() {
  auto lease = PortLease::Acquire(LeaseRanges(EphemeralRange()), [] { return RandomSeed(); });
  EXPECT_TRUE(lease.ok()) << lease.status().message();
  return std::move(lease).value();
}

// A server as others write them: binds with one option (0: none), listens. errno on failure.
int Serve(int family, bool loopback, uint16_t port, int option, UniqueFd* out) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (option != 0) ::setsockopt(fd.get(), SOL_SOCKET, option, &on, sizeof on);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  if (loopback) six.sin6_addr = in6addr_loopback;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  if (loopback) four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool v6 = family == AF_INET6;
  auto* address = v6 ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  if (::bind(fd.get(), address, v6 ? sizeof six : sizeof four) != 0) return errno;
  if (::listen(fd.get(), 1) != 0) return errno;
  *out = std::move(fd);
  return 0;
}

std::vector<std::pair<int, int>> Pairs(const std::vector<PortRange>& ranges) {
  std::vector<std::pair<int, int>> pairs;
  for (const PortRange& range : ranges) pairs.emplace_back(range.first, range.last);
  return pairs;
}

TEST(LeaseRanges, LieOutsideTheEphemeralRangeWhereThereIsRoom) {
  EXPECT_THAT(Pairs(LeaseRanges({32768, 60999})),
              ElementsAre(std::pair(10000, 32767), std::pair(61000, 65535)));
  EXPECT_THAT(Pairs(LeaseRanges({1024, 60999})), ElementsAre(std::pair(61000, 65535)));
  EXPECT_THAT(Pairs(LeaseRanges({1024, 65535})), ElementsAre(std::pair(10000, 65535)));
  EXPECT_THAT(Pairs(LeaseRanges({10500, 65535})), ElementsAre(std::pair(10000, 65535)));
}

TEST(PortLease, NoTwoGetTheSamePort) {
  std::vector<PortLease> leases;
  std::set<int> ports;
  for (int i = 0; i < 200; ++i) {
    // The same start for all: every search has to step over what the others hold.
    auto lease = PortLease::Acquire(LeaseRanges(EphemeralRange()), [] { return uint64_t{777}; });
    ASSERT_TRUE(lease.ok());
    EXPECT_TRUE(ports.insert(lease->port()).second) << lease->port();
    leases.push_back(std::move(*lease));
  }
}

TEST(PortLease, OneOfTheTwoOptionsIsEnoughToListenOverIt) {
  for (int family : {AF_INET, AF_INET6}) {
    for (bool loopback : {false, true}) {
      for (int option : {SO_REUSEADDR, SO_REUSEPORT}) {
        PortLease lease = TakeAny();
        UniqueFd server;
        EXPECT_EQ(Serve(family, loopback, lease.port(), option, &server), 0);
      }
    }
  }
}

TEST(PortLease, AProgramThatSetsNeitherNeedsItReleased) {
  PortLease lease = TakeAny();
  UniqueFd server;
  EXPECT_EQ(Serve(AF_INET, true, lease.port(), 0, &server), EADDRINUSE);
  lease.Release();
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(Serve(AF_INET, true, lease.port(), 0, &server), 0);
}

TEST(PortLease, ATakenPortIsRefusedWithASentence) {
  PortLease lease = TakeAny();
  auto second = PortLease::AcquirePort(lease.port());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kAlreadyExists);
  EXPECT_NE(second.status().message().find(std::to_string(lease.port())), std::string::npos);
  lease.Release();
  EXPECT_TRUE(PortLease::AcquirePort(lease.port()).ok());
}

TEST(PortLease, NotTakenFromAListener) {
  PortLease lease = TakeAny();
  UniqueFd server;
  ASSERT_EQ(Serve(AF_INET, true, lease.port(), SO_REUSEPORT, &server), 0);
  const uint16_t port = lease.port();
  lease.Release();
  EXPECT_FALSE(PortLease::AcquirePort(port).ok());
}

TEST(PortLease, SaysWhenNoneIsFree) {
  PortLease lease = TakeAny();
  auto none = PortLease::Acquire({{lease.port(), lease.port()}}, [] { return uint64_t{0}; });
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kResourceExhausted);
}

TEST(Listeners, TellsOursFromAStranger) {
  PortLease lease = TakeAny();
  const pid_t self = ::getpid();
  EXPECT_EQ(CheckPortOwner(lease.port(), {self}, nullptr), PortOwner::kNone);
  for (int family : {AF_INET, AF_INET6}) {
    UniqueFd server;
    ASSERT_EQ(Serve(family, true, lease.port(), SO_REUSEADDR, &server), 0);
    EXPECT_EQ(CheckPortOwner(lease.port(), {self}, nullptr), PortOwner::kTaskTree);
    Listener stranger;
    EXPECT_EQ(CheckPortOwner(lease.port(), {::getppid()}, &stranger), PortOwner::kOther);
    EXPECT_EQ(stranger.pid, self);
    EXPECT_EQ(stranger.program, "host_test");
    EXPECT_EQ(stranger.uid, ::geteuid());
    EXPECT_EQ(stranger.address, family == AF_INET ? "127.0.0.1" : "::1");
  }
}

// As in `unshare --pid --fork`: /proc still shows the numbers of the namespace outside.
TEST(Listeners, WithAForeignProcNoneIsTakenForAStranger) {
  EXPECT_TRUE(ProcShowsOwnNamespace());
  if (::geteuid() != 0) GTEST_SKIP() << "needs a PID namespace";
  PortLease lease = TakeAny();
  UniqueFd server;
  ASSERT_EQ(Serve(AF_INET, true, lease.port(), SO_REUSEADDR, &server), 0);
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t inner = ::fork();
    if (inner == 0) {
      if (ProcShowsOwnNamespace()) ::_exit(1);
      const PortOwner owner = CheckPortOwner(lease.port(), {::getpid()}, nullptr);
      ::_exit(owner == PortOwner::kTaskTree ? 0 : 2);
    }
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(outer, &status, 0), outer);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs a PID namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Loopback, IsDownInANewNetworkNamespace) {
  EXPECT_TRUE(CheckLoopback().ok());
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNET) != 0) ::_exit(77);
    const Status status = CheckLoopback();
    const bool says = status.message().find("`ip link set lo up`") != std::string::npos;
    ::_exit(status.code() == Code::kUnavailable && says ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs a network namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Binds with one option (0: none) without listening.
UniqueFd Hold(uint16_t port, int option) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (option != 0) ::setsockopt(fd.get(), SOL_SOCKET, option, &on, sizeof on);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&four), sizeof four), 0);
  return fd;
}

TEST(Listeners, WhoOnlyHoldsAPortIsFoundToo) {
  PortLease lease = TakeAny();
  const uint16_t port = lease.port();
  EXPECT_FALSE(IsBoundWithoutListener(port));  // the lease itself
  for (const int option : {SO_REUSEADDR, SO_REUSEPORT}) {
    const UniqueFd holder = Hold(port, option);
    EXPECT_TRUE(IsBoundWithoutListener(port)) << option;
  }
  EXPECT_FALSE(IsBoundWithoutListener(port));
  {
    UniqueFd listener;
    ASSERT_EQ(Serve(AF_INET, true, port, SO_REUSEADDR, &listener), 0);
    EXPECT_FALSE(IsBoundWithoutListener(port));  // that one is seen
  }
  lease.Release();
  EXPECT_FALSE(IsBoundWithoutListener(port));
  const UniqueFd holder = Hold(port, 0);
  EXPECT_TRUE(IsBoundWithoutListener(port));
}

TEST(Listeners, SocketsOfSeveralPortsAtOnce) {
  PortLease one = TakeAny();
  PortLease two = TakeAny();
  const std::vector<uint16_t> ports{one.port(), two.port()};
  EXPECT_EQ(ListeningSockets(ports), std::vector<std::vector<uint64_t>>(2));
  UniqueFd first;
  UniqueFd second;
  ASSERT_EQ(Serve(AF_INET, true, two.port(), SO_REUSEPORT, &first), 0);
  const auto alone = ListeningSockets(ports);
  EXPECT_TRUE(alone[0].empty());
  EXPECT_EQ(alone[1].size(), 1u);
  ASSERT_EQ(Serve(AF_INET, true, two.port(), SO_REUSEPORT, &second), 0);
  EXPECT_EQ(ListeningSockets(ports)[1].size(), 2u);
}

}  // namespace
}  // namespace shoal::host
