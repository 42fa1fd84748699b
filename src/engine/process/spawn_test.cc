#include "engine/process/spawn.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

namespace shoal::engine {
namespace {

constexpr int kPatience_ms = 20'000;

bool EndsInTime(int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  return ::poll(&ended, 1, kPatience_ms) == 1;
}

// Without and with SpawnSpec::ends_with_us.
class SpawnTest : public testing::TestWithParam<bool> {
 protected:
  SpawnSpec Spec(std::vector<std::string> argv) {
    return {.argv = std::move(argv),
            .env = {"PATH=/usr/bin:/bin", "WHO=me"},
            .work_dir = dir_.path(),
            .log = dir_.path() / "log",
            .ends_with_us = GetParam()};
  }
  const TempDir dir_ = std::move(TempDir::Create("spawn").value());
};

TEST_P(SpawnTest, ASessionOfItsOwnWithWhatIsSaid) {
  // All but the three descriptors, of which `ls` adds one for the directory that it lists.
  const auto spawned = Spawn(Spec({"sh", "-c",
                                   "pwd; echo $WHO >&2; ls /proc/self/fd | wc -l; "
                                   "cut -d' ' -f6 /proc/$$/stat | grep -qx $$"}));
  ASSERT_TRUE(spawned.ok()) << spawned.status().message();
  ASSERT_TRUE(EndsInTime(spawned->pidfd.get()));
  int status = -1;
  ASSERT_TRUE(ReadEnd(spawned->pidfd.get(), spawned->pid, spawned->start_ticks, &status));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*ReadFile(dir_.path() / "log", 4096), dir_.path().string() + "\nme\n4\n");
}

TEST_P(SpawnTest, WhatCannotBeStartedIsNamed) {
  const auto none = Spawn(Spec({"/no/such/program"}));
  EXPECT_EQ(none.status().code(), Code::kNotFound);
  SpawnSpec nowhere = Spec({"true"});
  nowhere.work_dir = "/no/such/directory";
  EXPECT_NE(Spawn(nowhere).status().message().find("/no/such/directory"), std::string::npos);
  EXPECT_EQ(Spawn(Spec({"/etc/passwd"})).status().code(), Code::kPermissionDenied);
}

INSTANTIATE_TEST_SUITE_P(Ways, SpawnTest, testing::Bool());

TEST(SpawnWithUs, EndsWithItsParentHoweverThatEnds) {
  const TempDir dir = std::move(TempDir::Create("spawn").value());
  int told[2] = {-1, -1};
  ASSERT_EQ(::pipe(told), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto spawned = Spawn({.argv = {"sleep", "1000"},
                                .env = {"PATH=/usr/bin:/bin"},
                                .work_dir = "",
                                .log = dir.path() / "log",
                                .ends_with_us = true});
    const pid_t pid = spawned.ok() ? spawned->pid : -1;
    (void)!::write(told[1], &pid, sizeof pid);
    for (;;) ::pause();
  }
  pid_t pid = -1;
  ASSERT_EQ(::read(told[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ASSERT_GT(pid, 0);
  const auto watched = WatchChild(pid, "sleep");
  ASSERT_TRUE(watched.ok());
  ::kill(parent, SIGKILL);
  EXPECT_TRUE(EndsInTime(watched->get()));
  ::waitpid(parent, nullptr, 0);
  ::close(told[0]);
  ::close(told[1]);
}

}  // namespace
}  // namespace shoal::engine
