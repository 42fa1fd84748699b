#include "rendezvous/launcher/metric_lines.h"

#include <gtest/gtest.h>

namespace shoal::rendezvous {
namespace {

constexpr TimePoint kNow = TimePoint(std::chrono::seconds(100));

std::vector<std::string> Found(const std::vector<std::string>& pieces) {
  std::vector<std::string> found;
  MetricLines lines(1, [&](const json::object& metric) { found.push_back(ToText(metric)); });
  for (const std::string& piece : pieces) lines.Feed(0, piece, kNow);
  lines.Finish(kNow);
  return found;
}

TEST(MetricLines, FindsLinesHoweverTheBytesCome) {
  const std::string text =
      "begin\nshoal.metric {\"loss\":0.5}\r\nx shoal.metric {\"a\":1}\n\nshoal.met\n"
      "shoal.metric {\"b\":2}\nshoal.metric [1]\nshoal.metric broken\nshoal.metric {\"c\":3}";
  const std::vector<std::string> expected = {R"({"loss":5E-1})", R"({"b":2})", R"({"c":3})"};
  EXPECT_EQ(Found({text}), expected);
  for (size_t cut = 1; cut < text.size(); ++cut)
    EXPECT_EQ(Found({text.substr(0, cut), text.substr(cut)}), expected) << cut;
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  EXPECT_EQ(Found(bytes), expected);
}

TEST(MetricLines, LongLinesAndFloodsAreBounded) {
  const std::string line = "shoal.metric {\"a\":1}\n";
  const std::string longest =
      "shoal.metric {\"a\":\"" + std::string(MetricLines::kLongestLine, 'x') + "\"}\n";
  EXPECT_EQ(Found({longest, line}).size(), 1U);
  EXPECT_EQ(Found({longest.substr(0, 3000), longest.substr(3000), line}).size(), 1U);
  EXPECT_EQ(Found(std::vector<std::string>(1000, line)).size(), 50U);
}

TEST(MetricLines, ProcessesHaveLinesOfTheirOwn) {
  int found = 0;
  MetricLines lines(2, [&](const json::object&) { ++found; });
  lines.Feed(0, "shoal.metric {\"a\"", kNow);
  lines.Feed(1, "other\n", kNow);
  lines.Feed(0, ":1}\n", kNow);
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace shoal::rendezvous
