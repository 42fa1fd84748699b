// Leases of GPUs, on a fake library whose devices can be lost, hold memory and report errors.

#include "host/gpu/gpu_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace shoal::host {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Gpus : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("FAKE_NVML", (dir_.path() / "devices").c_str(), 1);
    Devices("GPU-a A100 40000 300 0 0\nGPU-b A100 40000 300 0 0\n");
    nvml_ = Nvml::Load(FAKE_NVML_LIBRARY).value();
  }
  void Devices(const std::string& lines) { std::ofstream(dir_.path() / "devices") << lines; }
  Result<GpuLease> Take(int count, const std::string& holder = "job worker-0") {
    return AcquireGpus(nvml_.get(), dir_.path() / "gpus", count, holder);
  }
  std::vector<GpuLeaseState> List() {
    return ListGpuLeases(nvml_.get(), dir_.path() / "gpus").value();
  }
  void Refused(const std::string& why) {
    const auto lease = Take(2);
    ASSERT_EQ(lease.status().code(), Code::kResourceExhausted) << lease.status().message();
    EXPECT_THAT(lease.status().message(), HasSubstr(why));
    EXPECT_THAT(lease.status().message(), HasSubstr("1 of 2 can be had"));
    const auto list = List();
    EXPECT_EQ(list.at(0).use, GpuUse::kQuarantined);
    EXPECT_THAT(list.at(0).reason, HasSubstr(why));
    EXPECT_EQ(list.at(1).use, GpuUse::kFree);
  }

  TempDir dir_ = TempDir::Create().value();
  std::unique_ptr<Nvml> nvml_;
};

TEST_F(Gpus, AreLeasedToOneAtATime) {
  auto first = Take(1);
  ASSERT_TRUE(first.ok()) << first.status().message();
  auto second = Take(1, "other worker-3");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->visible(), "GPU-a");
  EXPECT_EQ(second->visible(), "GPU-b");
  const auto third = Take(1);
  EXPECT_EQ(third.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(third.status().message(), HasSubstr("GPU 1: it is leased to other worker-3"));
  EXPECT_EQ(List().at(1).use, GpuUse::kLeased);
  EXPECT_EQ(List().at(1).holder, "other worker-3");
  *second = {};
  EXPECT_EQ(Take(1)->visible(), "GPU-b");
}

// As if another user had made /tmp/shoal-UID first.
TEST_F(Gpus, AreNotLeasedInAPlaceThatOthersMayReplace) {
  fs::permissions(dir_.path(), fs::perms::all);
  const auto lease = Take(1);
  fs::permissions(dir_.path(), fs::perms::owner_all);
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.status().code(), Code::kPermissionDenied);
}

TEST_F(Gpus, AllOrNone) {
  {
    const auto one = Take(1);
    EXPECT_FALSE(Take(2).ok());
  }
  const auto both = Take(2);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->visible(), "GPU-a,GPU-b");
  EXPECT_FALSE(Take(3).ok());
}

TEST_F(Gpus, AreNotGivenWhileAProcessIsOnThem) {
  Devices("GPU-a A100 40000 300 0 0 4711 4712\nGPU-b A100 40000 300 0 0\n");
  Refused("process 4711 is on it and 1 more");
  Devices("GPU-a A100 40000 300 0 0\nGPU-b A100 40000 300 0 0\n");
  EXPECT_TRUE(Take(2).ok()) << "clean again";
  EXPECT_EQ(List().at(0).use, GpuUse::kFree);
}

TEST_F(Gpus, AreNotGivenWhileTheirMemoryIsNotBack) {
  ASSERT_TRUE(Take(1).ok());
  Devices("GPU-a A100 40000 465 0 0\nGPU-b A100 40000 300 0 0\n");
  Refused("465 MiB of its memory are in use");
  // A little more each time is not taken for normal after some leases.
  for (int used = 300; used < 364; used += 32) {
    Devices("GPU-a A100 40000 " + std::to_string(used) + " 0 0\nGPU-b A100 40000 300 0 0\n");
    EXPECT_TRUE(Take(1).ok());
  }
  Devices("GPU-a A100 40000 396 0 0\nGPU-b A100 40000 300 0 0\n");
  Refused("396 MiB of its memory are in use");
}

TEST_F(Gpus, ThatWereNeverLeasedMayHoldWhatADriverHolds) {
  Devices("GPU-a A100 40000 900 0 0\nGPU-b A100 40000 2000 0 0\n");
  EXPECT_TRUE(Take(1).ok());
  EXPECT_THAT(Take(2).status().message(), HasSubstr("GPU 1: it is quarantined: 2000 MiB"));
}

TEST_F(Gpus, ThatAreLostOrHaveErrorsAreNamed) {
  Devices("GPU-a A100 40000 300 0 15\nGPU-b A100 40000 300 -1 0\n");
  Refused("it does not answer (GPU is lost)");
  Devices("GPU-a A100 40000 300 3 0\nGPU-b A100 40000 300 0 0\n");
  Refused("3 uncorrected memory errors");
}

TEST_F(Gpus, ThatWereLostInALeaseAreNotGivenAgain) {
  auto lease = Take(1);
  ASSERT_TRUE(lease.ok());
  Devices("GPU-a A100 40000 300 0 15\nGPU-b A100 40000 300 0 0\n");
  *lease = {};
  Refused("GPU is lost");
}

// The lock is gone with the program that had it, but something that it had started lives on.
TEST_F(Gpus, AreNotGivenWhileAProcessOfTheLastLeaseLives) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::string visible;
  {
    const auto lease = Take(1);
    ASSERT_TRUE(lease.ok());
    visible = "CUDA_VISIBLE_DEVICES=" + lease->visible();
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[0], 0);
    ::close(ends[1]);
    const char* const argv[] = {"cat", nullptr};
    const char* const env[] = {visible.c_str(), nullptr};
    ::execve("/bin/cat", const_cast<char* const*>(argv), const_cast<char* const*>(env));
    ::_exit(127);
  }
  const std::string environ_file = "/proc/" + std::to_string(child) + "/environ";
  while (ReadFile(environ_file, 1 << 20).value_or("").rfind(visible, 0) != 0) {
  }
  Refused("of its last lease (job worker-0) still lives");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_TRUE(Take(2).ok());
}

TEST_F(Gpus, KilledHoldersHoldNothing) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lease = Take(2);
    (void)!::write(ends[1], lease.ok() ? "1" : "0", 1);
    for (;;) ::pause();
  }
  char taken = '0';
  ASSERT_EQ(::read(ends[0], &taken, 1), 1);
  EXPECT_EQ(taken, '1');
  EXPECT_FALSE(Take(1).ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(Take(2).ok());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Gpus, DamagedRecordsAndStrangeNamesDoNoHarm) {
  ASSERT_TRUE(Take(2).ok());
  std::ofstream(dir_.path() / "gpus" / "GPU-a.json") << "{\"idle_bytes\": \"x\", ";
  EXPECT_TRUE(Take(2).ok());
  Devices("../../evil A100 40000 300 0 0\nGPU-b A100 40000 300 0 0\n");
  EXPECT_FALSE(Take(2).ok());
  EXPECT_FALSE(fs::exists(dir_.path().parent_path() / "evil.lock"));
  EXPECT_TRUE(Take(1).ok());
}

TEST(Nvml, SaysWhatIsMissing) {
  EXPECT_EQ(Nvml::Load("libno-such-nvml.so").status().code(), Code::kNotFound);
  ::unsetenv("FAKE_NVML");
  const auto no_driver = Nvml::Load(FAKE_NVML_LIBRARY);
  EXPECT_EQ(no_driver.status().code(), Code::kUnavailable);
  EXPECT_THAT(no_driver.status().message(), HasSubstr("Driver Not Loaded"));
}

}  // namespace
}  // namespace shoal::host
