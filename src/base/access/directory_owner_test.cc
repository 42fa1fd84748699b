#include "base/access/directory_owner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr UserIds kUser{61'001, 61'001};  // without an entry on any machine

// A directory of root that others may pass, with a secret of root and a directory of kUser.
class DirectoryOwnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0711), 0);
    ASSERT_TRUE(WriteFileAtomically(secret_, "secret", 0600, false).ok());
    ASSERT_EQ(::mkdir(theirs_.c_str(), 0700), 0);
    ASSERT_EQ(::chown(theirs_.c_str(), kUser.uid, kUser.gid), 0);
  }

  const TempDir dir_ = *TempDir::Create();
  const fs::path secret_ = dir_.path() / "secret";
  const fs::path theirs_ = dir_.path() / "theirs";
};

TEST(ParseUserTest, NumbersNamesAndWhatIsRefused) {
  EXPECT_EQ(*ParseUserIds("2001:2002"), (UserIds{2001, 2002}));
  EXPECT_EQ(*ParseUserIds("61001"), kUser);
  const auto nobody = ParseUserIds("nobody");
  ASSERT_TRUE(nobody.ok()) << nobody.status().message();
  EXPECT_NE(nobody->uid, 0u);
  EXPECT_EQ(ToText(kUser), "61001:61001");
  for (const char* refused : {"", "root", "0", "0:0", "0:5", "5:0", "-1", "-1:-1", "4294967295:1",
                              "4294967296:4294967296", "2147483647:1", "1:", ":1", "1:2:3", "1 :2",
                              "no-such-user-here", "a:b", "99999999999999999999"}) {
    EXPECT_FALSE(ParseUserIds(refused).ok()) << refused;
  }
  EXPECT_FALSE(ParseUserIds(std::string_view("nobody\0x", 8)).ok());
}

TEST_F(DirectoryOwnerTest, FindsForeignOwnersOnly) {
  EXPECT_EQ(ForeignOwner(theirs_), kUser);
  EXPECT_EQ(ForeignOwner(dir_.path()), std::nullopt);
  EXPECT_EQ(ForeignOwner(dir_.path() / "absent"), std::nullopt);
  fs::create_symlink(theirs_, dir_.path() / "link");
  EXPECT_EQ(ForeignOwner(dir_.path() / "link"), std::nullopt);
}

TEST_F(DirectoryOwnerTest, ALinkLeadsNowhereThatTheOwnerCannotReach) {
  fs::create_symlink(secret_, theirs_ / "link");
  fs::create_symlink(dir_.path(), theirs_ / "root");
  EXPECT_TRUE(ReadFile(theirs_ / "link", 100).ok());  // with the rights of root
  {
    const FileAccessAs owner(theirs_);
    EXPECT_EQ(::open((theirs_ / "link").c_str(), O_RDONLY), -1);
    EXPECT_EQ(errno, EACCES);
    EXPECT_FALSE(WriteFileAtomically(theirs_ / "root" / "planted", "x", 0600, false).ok());
    EXPECT_TRUE(WriteFileAtomically(theirs_ / "own", "x", 0600, false).ok());
    std::error_code error;
    fs::remove(theirs_ / "root" / "secret", error);
    EXPECT_TRUE(error);
  }
  EXPECT_EQ(*ReadFile(secret_, 100), "secret");
  struct stat info {};
  ASSERT_EQ(::stat((theirs_ / "own").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kUser.uid);
  EXPECT_EQ(info.st_gid, kUser.gid);
}

TEST_F(DirectoryOwnerTest, OpensNeitherLinksNorFifosInTheScope) {
  ASSERT_EQ(::mkfifo((theirs_ / "fifo").c_str(), 0666), 0);
  fs::create_symlink("/proc/self/maps", theirs_ / "link");
  fs::create_symlink("/dev/zero", theirs_ / "device");
  const FileAccessAs owner(theirs_);
  for (const char* name : {"fifo", "link", "device"})
    EXPECT_FALSE(ReadFile(theirs_ / name, 100).ok()) << name;
  EXPECT_FALSE(OpenFile(theirs_ / "fifo", O_WRONLY).ok());  // and returns
  EXPECT_TRUE(OpenFile(theirs_, O_RDONLY | O_DIRECTORY).ok());
}

TEST_F(DirectoryOwnerTest, GroupsOfRootAreNotKept) {
  ASSERT_EQ(::chmod(secret_.c_str(), 0640), 0);  // root's group may read it
  const FileAccessAs owner(theirs_);
  EXPECT_FALSE(ReadFile(secret_, 100).ok());
}

TEST_F(DirectoryOwnerTest, ScopesOfOneUserMayNest) {
  const FileAccessAs owner(theirs_);
  {
    const FileAccessAs again(theirs_);
    EXPECT_FALSE(ReadFile(secret_, 100).ok());
  }
  EXPECT_FALSE(ReadFile(secret_, 100).ok());
}

TEST_F(DirectoryOwnerTest, AThreadBesideTheScopeIsRoot) {
  std::atomic<int> step{0};
  bool read = false;
  std::thread other([&] {
    step.wait(0);
    read = ReadFile(secret_, 100).ok();
  });
  {
    const FileAccessAs owner(theirs_);
    EXPECT_FALSE(ReadFile(secret_, 100).ok());
    step = 1;
    step.notify_one();
    other.join();
  }
  EXPECT_TRUE(read);
  EXPECT_TRUE(ReadFile(secret_, 100).ok());
}

TEST_F(DirectoryOwnerTest, RemovesWithoutFollowingLinks) {
  const fs::path victim = dir_.path() / "victim";
  ASSERT_TRUE(MakeDirectories(victim / "deep", 0700).ok());
  ASSERT_TRUE(WriteFileAtomically(victim / "deep" / "file", "x", 0600, false).ok());
  fs::create_directory_symlink(victim, theirs_ / "link");
  fs::create_directories(theirs_ / "a" / "b");
  ASSERT_TRUE(RemoveOwnedDirectory(theirs_).ok());
  EXPECT_FALSE(fs::exists(theirs_));
  EXPECT_TRUE(fs::exists(victim / "deep" / "file"));
}

TEST_F(DirectoryOwnerTest, RemovesDirectoriesDeeperThanItMayHaveDescriptors) {
  const fs::path deep = theirs_ / "deep";
  ASSERT_EQ(::mkdir(deep.c_str(), 0755), 0);
  ASSERT_EQ(::chown(deep.c_str(), kUser.uid, kUser.gid), 0);
  {
    UniqueFd at(::open(deep.c_str(), O_RDONLY | O_DIRECTORY));
    const FileAccessAs owner(theirs_);
    for (int i = 0; i < 3000; ++i) {
      ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
      const UniqueFd file(::openat(at.get(), "file", O_CREAT | O_WRONLY, 0600));
      at.Reset(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY));
      ASSERT_TRUE(at.valid());
    }
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const Status removed = RemoveOwnedDirectory(theirs_);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(removed.ok()) << removed.message();
  EXPECT_FALSE(fs::exists(theirs_));
}

TEST_F(DirectoryOwnerTest, RemovesWhatItsOwnerCannotRead) {
  const fs::path closed = theirs_ / "a" / "closed";
  fs::create_directories(closed / "b");
  for (int i = 0; i < 20; ++i) std::ofstream(closed / std::to_string(i)) << "x";
  for (const fs::path& path : {theirs_ / "a", closed, closed / "b"})
    ASSERT_EQ(::chown(path.c_str(), kUser.uid, kUser.gid), 0);
  ASSERT_EQ(::chmod(closed.c_str(), 0), 0);
  const Status removed = RemoveOwnedDirectory(theirs_);
  EXPECT_TRUE(removed.ok()) << removed.message();
  EXPECT_FALSE(fs::exists(theirs_));
  EXPECT_TRUE(RemoveOwnedDirectory(theirs_).ok());  // there is none
}

// A user exchanges a directory and a link to a directory of root as fast as it can while its
// directory is removed again and again.
TEST_F(DirectoryOwnerTest, AnExchangeDuringTheRemovalHarmsNobodyElse) {
  const fs::path victim = dir_.path() / "victim";
  ASSERT_TRUE(MakeDirectories(victim, 0700).ok());
  ASSERT_TRUE(WriteFileAtomically(victim / "file", "x", 0600, false).ok());
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    const fs::path target = dir_.path() / ("job-" + std::to_string(round));
    const fs::path inner = target / "outputs";
    fs::create_directories(inner);
    std::ofstream(inner / "file") << "x";
    fs::create_directory_symlink(victim, target / "other");
    std::atomic<bool> done{false};
    std::thread attacker([&] {
      while (!done)
        (void)::renameat2(AT_FDCWD, inner.c_str(), AT_FDCWD, (target / "other").c_str(),
                          RENAME_EXCHANGE);
    });
    (void)RemoveOwnedDirectory(target);
    done = true;
    attacker.join();
    ASSERT_TRUE(fs::exists(victim / "file")) << round;
  }
}

}  // namespace
}  // namespace shoal
