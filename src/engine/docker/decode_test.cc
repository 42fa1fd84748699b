#include "engine/docker/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::engine::docker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kLabels =
    R"({"shoal.dev/job":"j","shoal.dev/role":"worker","shoal.dev/index":"3","shoal.dev/incarnation":"1"})";

TEST(DockerDecode, EventsOfOursAndOfNobodys) {
  const std::string text =
      std::string(R"({"Type":"container","Action":"die","timeNano":1600000000000000042,)") +
      R"("Actor":{"ID":"aa","Attributes":)" + kLabels + "}}";
  const auto event = DecodeEvent(text);
  ASSERT_TRUE(event.ok() && event->has_value());
  EXPECT_EQ((*event)->action, "die");
  EXPECT_EQ((*event)->task.index, 3);
  EXPECT_EQ((*event)->task.incarnation, 1);
  EXPECT_EQ((*event)->time, "1600000000.000000042");
  EXPECT_FALSE(
      DecodeEvent(R"({"Type":"container","Actor":{"Attributes":{"a":"b"}}})")->has_value());
  EXPECT_FALSE(DecodeEvent("{}")->has_value());
  EXPECT_FALSE(DecodeEvent("[").ok());
}

TEST(DockerDecode, EntryPointsOfImages) {
  const auto both = DecodeEntryPoint(R"({"Config":{"Entrypoint":["/e","-x"],"Cmd":["a"]}})");
  ASSERT_TRUE(both.ok());
  EXPECT_THAT(both->program, ElementsAre("/e", "-x"));
  EXPECT_THAT(both->arguments, ElementsAre("a"));
  const auto none = DecodeEntryPoint(R"({"Config":{"Entrypoint":null,"Cmd":["sh"]}})");
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(none->program, IsEmpty());
  EXPECT_THAT(none->arguments, ElementsAre("sh"));
  EXPECT_FALSE(DecodeEntryPoint("{}").ok());
  EXPECT_FALSE(DecodeEntryPoint(R"({"Config":{"Cmd":"sh"}})").ok());
}

TEST(DockerDecode, ContainersWithDamagedLabelsAreLeftOut) {
  const std::string text =
      std::string(R"([{"Id":"aa","State":"running","Labels":)") + kLabels +
      R"(},{"Id":"bb","State":"exited","Status":"Exited (137) 2 hours ago","Labels":)" + kLabels +
      R"(},{"Id":"cc","Labels":{"shoal.dev/job":"../x","shoal.dev/role":"w","shoal.dev/index":"0"}},)" +
      R"({"Id":"dd","Labels":{"shoal.dev/job":"j","shoal.dev/role":"w","shoal.dev/index":"-1"}}])";
  const auto containers = DecodeContainers(text);
  ASSERT_TRUE(containers.ok());
  ASSERT_EQ(containers->size(), 2u);
  EXPECT_TRUE((*containers)[0].running);
  EXPECT_EQ((*containers)[1].exit_code, 137);
  // An identifier becomes part of a target.
  EXPECT_FALSE(
      DecodeContainers(std::string(R"([{"Id":"../../x","Labels":)") + kLabels + "}]").ok());
  EXPECT_FALSE(DecodeContainers("{}").ok());
}

TEST(DockerDecode, FramesComeInAnyPieces) {
  std::string text{1, 0, 0, 0, 0, 0, 0, 3, 'o', 'u', 't', 2, 0, 0, 0, 0, 0, 0, 2, 'e', 'r'};
  FrameCutter cutter;
  std::vector<FrameCutter::Frame> frames;
  for (const char c : text) ASSERT_TRUE(cutter.Feed({&c, 1}, &frames).ok());
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].bytes, "out");
  EXPECT_EQ(frames[1].stream, 2);
  EXPECT_FALSE(FrameCutter().Feed("plain text", &frames).ok());
  EXPECT_FALSE(FrameCutter().Feed(std::string{1, 0, 0, 0, 127, 0, 0, 0}, &frames).ok());
}

TEST(DockerDecode, LinesAreBounded) {
  LineCutter cutter(10);
  std::vector<std::string> lines;
  ASSERT_TRUE(cutter.Feed("one\r\ntw", &lines).ok());
  ASSERT_TRUE(cutter.Feed("o\n\n", &lines).ok());
  EXPECT_THAT(lines, ElementsAre("one", "two"));
  EXPECT_FALSE(cutter.Feed("01234567890", &lines).ok());
}

TEST(DockerDecode, VersionsAreNumbers) {
  EXPECT_LT(CompareVersions("1.9", "1.41"), 0);
  EXPECT_EQ(CompareVersions("1.41", "1.41"), 0);
  EXPECT_GT(CompareVersions("2", "1.99"), 0);
  EXPECT_LT(CompareVersions("", "1"), 0);
}

}  // namespace
}  // namespace shoal::engine::docker
