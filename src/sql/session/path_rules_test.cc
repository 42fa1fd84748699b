#include "sql/session/path_rules.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;

class PathRulesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::Create();
    ASSERT_TRUE(made.ok());
    directory_ = std::make_unique<TempDir>(std::move(*made));
    for (const char* const name : {"own", "data", "state/work", "database"})
      fs::create_directories(root() / name);
  }
  fs::path root() const { return directory_->path(); }
  std::string At(const std::string& name) const { return (root() / name).string(); }

  std::unique_ptr<TempDir> directory_;
};

TEST_F(PathRulesTest, AllowsItsDirectoriesOnly) {
  const PathRules rules{{At("own")}, {At("data/")}, {}};
  EXPECT_TRUE(rules.Check(At("own/a.csv")).ok());
  EXPECT_TRUE(rules.Check(At("own")).ok());
  EXPECT_TRUE(rules.Check(At("data/new/deep/a.csv")).ok());
  EXPECT_TRUE(rules.Check(At("data/*.csv")).ok());
  for (const std::string& path :
       {At("other"), At("database/a.csv"), At("data/../other/a.csv"), At("dat*/a.csv"),
        std::string("/etc/passwd"), std::string("/*"), std::string("../../etc/passwd")}) {
    const Status status = rules.Check(path);
    EXPECT_EQ(status.code(), Code::kPermissionDenied) << path;
  }
}

TEST_F(PathRulesTest, FollowsLinks) {
  const PathRules rules{{At("own")}, {}, {At("state")}};
  fs::create_symlink(At("state"), At("own/link"));
  EXPECT_EQ(rules.Check(At("own/link/secret")).code(), Code::kPermissionDenied);
  EXPECT_EQ(rules.Check(At("own/link/*")).code(), Code::kPermissionDenied);
}

TEST_F(PathRulesTest, OwnDirectoriesMayLieInDeniedOnes) {
  const PathRules rules{{At("state/work")}, {}, {At("state")}};
  EXPECT_TRUE(rules.Check(At("state/work/a")).ok());
  EXPECT_TRUE(rules.Check(At("data/a")).ok());
  EXPECT_FALSE(rules.Check(At("state/secrets.key")).ok());
  EXPECT_FALSE(rules.Check(At("state")).ok());
}

TEST_F(PathRulesTest, RefusesUris) {
  const PathRules rules{{"/"}, {}, {}};
  EXPECT_EQ(rules.Check("s3://bucket/a.csv").code(), Code::kPermissionDenied);
  EXPECT_TRUE(rules.Check("file:///tmp/a.csv").ok());
}

}  // namespace
}  // namespace shoal::sql
