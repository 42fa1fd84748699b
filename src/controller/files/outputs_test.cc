#include "controller/files/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(MissingOutputs, NamesThoseThatAreNotOnThisMachine) {
  const TempDir dir = std::move(*TempDir::Create());
  const std::string none = dir.path() / "none";
  EXPECT_THAT(MissingOutputs({{"model", dir.path()}, {"plots", none}}),
              ElementsAre(HasSubstr("outputs.plots: " + none + " does not exist on this machine")));
  EXPECT_THAT(MissingOutputs({{"model", "/dev/null/below"}}),
              ElementsAre(HasSubstr("/dev/null/below")));
}

class PlaceOutputsTest : public testing::Test {
 protected:
  // The files that worker 0 wrote to $SHOAL_OUTPUT.
  void Write(const std::string& name, const std::string& bytes) {
    const fs::path path = dir_.path() / "job" / "outputs" / "worker-0.0" / name;
    ASSERT_TRUE(MakeDirectories(path.parent_path()).ok());
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }
  Status PlaceAll(const std::map<std::string, std::string>& outputs) {
    return PlaceOutputs(dir_.path() / "job", outputs);
  }
  std::string Read(const fs::path& path) { return ReadFile(path, 1000).value_or("none"); }
  TempDir dir_ = std::move(*TempDir::Create());
  const fs::path to_ = dir_.path() / "to";
};

TEST_F(PlaceOutputsTest, KeepsLinksAndModesOfWhatStandsThere) {
  Write("model/weights.bin", "new");
  Write("model/run.sh", "new");
  fs::permissions(dir_.path() / "job/outputs/worker-0.0/model/run.sh", fs::perms(0755));
  fs::create_symlink("weights.bin", dir_.path() / "job/outputs/worker-0.0/model/latest");
  ASSERT_TRUE(MakeDirectories(to_).ok());
  ASSERT_TRUE(WriteFileAtomically(dir_.path() / "elsewhere", "old").ok());
  fs::permissions(dir_.path() / "elsewhere", fs::perms(0600));
  fs::create_symlink(dir_.path() / "elsewhere", to_ / "weights.bin");
  for (int time = 0; time < 2; ++time) {
    const Status placed = PlaceAll({{"model", to_}});
    ASSERT_TRUE(placed.ok()) << placed.message();
    EXPECT_TRUE(fs::is_symlink(to_ / "weights.bin"));
    EXPECT_EQ(Read(dir_.path() / "elsewhere"), "new");
    EXPECT_EQ(fs::status(dir_.path() / "elsewhere").permissions(), fs::perms(0600));
    EXPECT_EQ(fs::status(to_ / "run.sh").permissions(), fs::perms(0755));
    EXPECT_EQ(fs::read_symlink(to_ / "latest"), "weights.bin");
  }
}

TEST_F(PlaceOutputsTest, SocketsAndFifosDoNotCostTheOthers) {
  Write("model/weights.bin", "new");
  const fs::path attempt = dir_.path() / "job/outputs/worker-0.0";
  ASSERT_EQ(::mkfifo((attempt / "model" / "control").c_str(), 0600), 0);
  ASSERT_EQ(::mknod((attempt / "agent").c_str(), S_IFSOCK | 0600, 0), 0);
  const Status placed = PlaceAll({{"model", to_}});
  ASSERT_TRUE(placed.ok()) << placed.message();
  EXPECT_EQ(Read(to_ / "weights.bin"), "new");
  EXPECT_FALSE(fs::exists(to_ / "control"));
  const auto files = ListOutputs(dir_.path() / "job").value();
  ASSERT_EQ(files.size(), 1u);
  ASSERT_TRUE(CopyOutputs(dir_.path() / "job", files, dir_.path() / "copy").ok());
  EXPECT_EQ(Read(dir_.path() / "copy/worker-0.0/model/weights.bin"), "new");
}

TEST_F(PlaceOutputsTest, OneThatIsMissingOrCannotBePlacedDoesNotCostTheOthers) {
  Write("model/weights.bin", "new");
  Write("plots/a.png", "new");
  EXPECT_EQ(PlaceAll({{"absent", to_ / "absent"}, {"model", to_}}).code(), Code::kNotFound);
  EXPECT_EQ(Read(to_ / "weights.bin"), "new");
  // A file in place of a directory is an error, which takes precedence over a missing output.
  const Status placed =
      PlaceAll({{"absent", to_ / "absent"}, {"model", to_ / "weights.bin"}, {"plots", to_}});
  EXPECT_NE(placed.code(), Code::kNotFound);
  EXPECT_THAT(placed.message(), HasSubstr("outputs.model: "));
  EXPECT_EQ(Read(to_ / "a.png"), "new");
}

}  // namespace
}  // namespace shoal::controller
