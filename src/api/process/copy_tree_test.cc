#include "api/process/copy_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/file.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

class CopyTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::Create("shoal-copy-tree");
    ASSERT_TRUE(made.ok());
    scratch_.emplace(std::move(*made));
    fs::create_directories(from());
    fs::create_directories(victim());
  }

  fs::path from() const { return scratch_->path() / "from"; }
  fs::path to() const { return scratch_->path() / "to"; }
  fs::path victim() const { return scratch_->path() / "victim"; }

  void Write(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(WriteFileAtomically(path, text, 0644, false).ok());
  }

  // `meanwhile` is called before each entry is looked at.
  template <typename Meanwhile>
  Status Copy(const std::optional<UserIds>& owner, const Meanwhile& meanwhile) {
    copied_ = {};
    return CopyTree(
        from(), to(), owner,
        [&](const fs::path& relative) {
          meanwhile(relative);
          return false;
        },
        &copied_);
  }

  // A user whose rights may be taken, if this process is root; it owns `from` then.
  std::optional<UserIds> GiveAway() {
    if (::geteuid() != 0) return std::nullopt;
    const UserIds user{61101, 61101};
    EXPECT_EQ(::chmod(scratch_->path().c_str(), 0711), 0);
    EXPECT_EQ(::chown(from().c_str(), user.uid, user.gid), 0);
    for (const auto& entry : fs::recursive_directory_iterator(from()))
      EXPECT_EQ(::lchown(entry.path().c_str(), user.uid, user.gid), 0);
    return user;
  }

  std::optional<TempDir> scratch_;
  CopiedFiles copied_;
};

void Nothing(const fs::path& /*relative*/) {}

TEST_F(CopyTreeTest, CopiesFilesDirectoriesAndLinks) {
  Write(from() / "a/b/file", "text");
  fs::create_symlink("a/b", from() / "link");
  fs::create_directories(from() / "empty");
  ASSERT_TRUE(Copy(std::nullopt, Nothing).ok());
  EXPECT_EQ(ReadFile(to() / "a/b/file", 100).value_or(""), "text");
  EXPECT_EQ(fs::read_symlink(to() / "link"), "a/b");
  EXPECT_TRUE(fs::is_directory(to() / "empty"));
  EXPECT_EQ(copied_.files, 1);
  EXPECT_EQ(copied_.bytes, 4);
  EXPECT_EQ(copied_.left_out, 0);
}

TEST_F(CopyTreeTest, WhatDisappearsMeanwhileEndsNothing) {
  for (const char* name : {"a/x", "b/x", "c/x", "d/x"}) Write(from() / name, "text");
  // `a` after it was made in the copy and before it is read; `b` before it is looked at.
  const Status done = Copy(std::nullopt, [&](const fs::path& relative) {
    if (relative == "b") {
      fs::remove_all(from() / "a");
      fs::remove_all(from() / "b");
    }
    if (relative == "c/x") fs::remove(from() / "c/x");
  });
  EXPECT_TRUE(done.ok()) << done.message();
  EXPECT_EQ(ReadFile(to() / "d/x", 100).value_or(""), "text");
  EXPECT_FALSE(fs::exists(to() / "c/x"));
}

TEST_F(CopyTreeTest, AnExchangedDirectoryLeadsNowhere) {
  Write(from() / "a/evil", "text");
  Write(from() / "z/kept", "text");
  fs::create_symlink(victim(), from() / "b");
  const auto owner = GiveAway();
  // `a` was looked at as a directory and becomes a link; `b` was copied as a link and becomes the
  // directory.
  const Status done = Copy(owner, [&](const fs::path& relative) {
    if (relative != "z") return;
    fs::rename(from() / "a", from() / "was-a");
    fs::rename(from() / "b", from() / "a");
    fs::rename(from() / "was-a", from() / "b");
  });
  EXPECT_TRUE(fs::is_empty(victim()));
  EXPECT_TRUE(fs::is_symlink(to() / "b"));
  if (!owner) return;
  EXPECT_TRUE(done.ok()) << done.message();
  EXPECT_EQ(ReadFile(to() / "z/kept", 100).value_or(""), "text");
  EXPECT_EQ(copied_.left_out, 1);
}

TEST_F(CopyTreeTest, PathsThatAreTooLongEndNothing) {
  Write(from() / "z/kept", "text");
  const auto owner = GiveAway();
  // Deeper than a path of the copy can be.
  const std::string name(200, 'n');
  fs::path deep = from();
  while (deep.native().size() + name.size() + 1 < 4000) deep /= name;
  fs::create_directories(deep);
  ASSERT_EQ(::chdir(deep.c_str()), 0);
  ASSERT_TRUE(fs::create_directories(name + "/" + name));
  ASSERT_EQ(::chdir("/"), 0);
  const Status done = Copy(owner, Nothing);
  if (owner) {
    EXPECT_TRUE(done.ok()) << done.message();
    EXPECT_EQ(copied_.left_out, 1);
  } else {
    EXPECT_FALSE(done.ok());
  }
}

TEST_F(CopyTreeTest, HolesStayHoles) {
  Write(from() / "sparse", "begin");
  constexpr off_t kSize = off_t{1} << 40;
  ASSERT_EQ(::truncate((from() / "sparse").c_str(), kSize), 0);
  ASSERT_TRUE(Copy(std::nullopt, Nothing).ok());
  struct stat info {};
  ASSERT_EQ(::stat((to() / "sparse").c_str(), &info), 0);
  EXPECT_EQ(info.st_size, kSize);
  EXPECT_LT(info.st_blocks, 10'000);
}

}  // namespace
}  // namespace shoal::api
