#include "learn/sparse/exchange/part_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::learn::sparse {
namespace {

using ::testing::HasSubstr;

// Of three workers and two files, worker 0 with the last part.
std::vector<PartSummary> Shares() {
  std::vector<PartSummary> shares(3);
  for (PartSummary& share : shares) {
    share.corpus = 77;
    share.files = 2;
    share.parts = 3;
    share.examples = 10;
  }
  shares[1].part = 0;
  shares[1].ranges = {{{0, 0}, {0, 500}}};
  shares[2].part = 1;
  shares[2].ranges = {{{0, 500}, {1, 0}}};
  shares[0].part = 2;
  shares[0].ranges = {{{1, 0}, {2, 0}}};
  return shares;
}

// The same with two blocks a part, there and back; two of part 2 are next to each other.
std::vector<PartSummary> SharesOfBlocks() {
  std::vector<PartSummary> shares = Shares();
  for (PartSummary& share : shares) share.blocks = 2;
  shares[1].ranges = {{{0, 0}, {0, 100}}, {{1, 70}, {2, 0}}};
  shares[2].ranges = {{{0, 100}, {0, 200}}, {{1, 20}, {1, 70}}};
  shares[0].ranges = {{{0, 200}, {1, 20}}};
  return shares;
}

TEST(PartSummary, PartsThatMakeUpTheDataAreGood) {
  for (const auto& shares : {Shares(), SharesOfBlocks()}) {
    const Status status = CheckPartSummaries(shares);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(PartSummary, GapsOverlapsAndOtherFilesAreErrors) {
  const auto message = [](auto change, std::vector<PartSummary> shares = Shares()) {
    change(shares);
    const Status status = CheckPartSummaries(shares);
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    return std::string(status.message());
  };
  EXPECT_THAT(message([](auto& s) { s[2].corpus = 78; }),
              HasSubstr("workers 0 and 2 see different"));
  EXPECT_THAT(message([](auto& s) { s[1].files = 3; }), HasSubstr("workers 0 and 1 see different"));
  EXPECT_THAT(message([](auto& s) { s[1].part = 2; }), HasSubstr("worker 1 has part 2 of 3"));
  EXPECT_THAT(message([](auto& s) { s[1].part = 9; }), HasSubstr("worker 1 has part 9 of 3"));
  EXPECT_THAT(message([](auto& s) { s[1].parts = 2; }), HasSubstr("worker 1 has part 0 of 2"));
  EXPECT_THAT(message([](auto& s) { s[2].ranges[0].begin.position = 501; }),
              HasSubstr("part 1 of the data begins at byte 501 of file 1, expected byte 500"));
  EXPECT_THAT(message([](auto& s) { s[1].ranges[0].end.position = 499; }),
              HasSubstr("part 1 of the data"));
  EXPECT_THAT(message([](auto& s) { s[1].ranges[0].begin.position = 1; }),
              HasSubstr("part 0 of the data"));
  EXPECT_THAT(message([](auto& s) {
                s[0].ranges[0].end = {1, 8};
              }),
              HasSubstr("expected the end of its 2"));
  EXPECT_THAT(message(
                  [](auto& s) {
                    s[0].ranges[0].end = {1, 19};
                  },
                  SharesOfBlocks()),
              HasSubstr("part 1 of the data begins at byte 20 of file 2, expected byte 19"));
  EXPECT_THAT(message([](auto& s) { s[2].ranges.pop_back(); }, SharesOfBlocks()),
              HasSubstr("part 0 of the data begins at byte 70 of file 2, expected byte 20"));
  EXPECT_THAT(message([](auto& s) { s[2].ranges.push_back(s[1].ranges[0]); }, SharesOfBlocks()),
              HasSubstr("begins at byte 0 of file 1, expected byte 100"));
}

TEST(PartSummary, BytesComeBackAndHostileOnesAreRefused) {
  PartSummary share = {1, 2, 3, 4, 2, {{{5, 6}, {7, 8}}, {{7, 20}, {8, 0}}}, 9, {10, 11}};
  share.columns = {{}, {1e12, -0.5, 2, 3, 4, 5, 6}};
  share.classes = {"no", "yes"};
  share.class_counts = {7, 2};
  share.labels = {1e9, 3, 5, 9, 0, 0, 0};
  share.weights = {1, 0.5, 2, 9, 0, 0, 0};
  const std::string bytes = EncodePartSummary(share);
  EXPECT_EQ(DecodePartSummary(bytes, "share/3").value(), share);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = DecodePartSummary(bytes.substr(0, size), "share/3");
    EXPECT_EQ(decoded.status().code(), Code::kDataLoss) << size;
  }
  EXPECT_FALSE(DecodePartSummary(bytes + "x", "share/3").ok());
  // As written by releases whose parts were one range, by those without counts, and by those
  // without columns.
  const size_t before_range = 4 + 4 * 8, ranges = 8 + 4 + 2 * 32;
  const std::string range = bytes.substr(bytes.size() - 2 * 32, 32);
  std::string old = bytes.substr(0, bytes.size() - ranges);
  old.insert(before_range, range);
  old[0] = 3;
  share.blocks = 1;
  share.ranges.pop_back();
  EXPECT_EQ(DecodePartSummary(old, "share/3").value(), share);
  const std::string one_range = old;
  const size_t counts = 4 + 2 * 8 + 2 * 56;
  old = one_range.substr(0, one_range.size() - counts);
  old[0] = 2;
  share.class_counts.clear();
  share.labels = share.weights = {};
  EXPECT_EQ(DecodePartSummary(old, "share/3").value(), share);
  old = one_range.substr(0, one_range.size() - counts - 2 * 56 - 4 - 4 - 6 - 7);
  old[0] = 1;
  share.columns.clear();
  share.classes.clear();
  EXPECT_EQ(DecodePartSummary(old, "share/3").value(), share);
}

}  // namespace
}  // namespace shoal::learn::sparse
