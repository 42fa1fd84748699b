// How workers divide a corpus: by its files alone.
#include "learn/sparse/dataset.h"

#include <gtest/gtest.h>

#include "data/text/test_text.h"

namespace shoal::learn::sparse {
namespace {

using data::ExampleFormat;

uint64_t BlocksOf(const std::vector<std::string>& contents, uint64_t workers,
                  ExampleFormat format = ExampleFormat::kLibsvm, bool whole_files = false) {
  const data::TextFiles files(contents);
  const data::Division division = DivisionFor(files.Open().value(), format, workers, whole_files);
  EXPECT_EQ(division.parts, workers);
  return division.blocks;
}

TEST(SparseDivision, FewFilesOfLinesAreCutIntoManyBlocks) {
  const std::string text(4 << 20, 'x');
  EXPECT_EQ(BlocksOf({text}, 4), 16u);
  EXPECT_EQ(BlocksOf({text, text, text}, 2), 16u);
  EXPECT_EQ(BlocksOf({text}, 4, ExampleFormat::kCsv), 16u);
  EXPECT_EQ(BlocksOf({text}, 1), 1u);
  EXPECT_EQ(BlocksOf({text}, 4, ExampleFormat::kLibsvm, true), 1u);
}

TEST(SparseDivision, BlocksAreNoSmallerThanAreReadAtATime) {
  EXPECT_EQ(BlocksOf({std::string(1 << 20, 'x')}, 4), 4u);
  EXPECT_EQ(BlocksOf({std::string(1000, 'x')}, 4), 1u);
}

TEST(SparseDivision, OfManyFilesABlockHasOne) {
  const std::vector<std::string> files(12, std::string(1 << 20, 'x'));
  EXPECT_EQ(BlocksOf(files, 2), 6u);
  EXPECT_EQ(BlocksOf(files, 6), 2u);
  EXPECT_EQ(BlocksOf(files, 2, ExampleFormat::kLibsvm, true), 6u);
  EXPECT_EQ(BlocksOf(files, 8, ExampleFormat::kLibsvm, true), 1u);
}

TEST(SparseDivision, FilesThatAreReadFromTheirBeginningAreCutRarely) {
  const std::string text(4 << 20, 'x');
  EXPECT_EQ(BlocksOf({text}, 4, ExampleFormat::kTfRecord), 1u);
  EXPECT_EQ(BlocksOf({text}, 4, ExampleFormat::kParquet), 1u);
  const std::vector<std::string> files(24, text);
  EXPECT_EQ(BlocksOf(files, 2, ExampleFormat::kTfRecord), 3u);
  EXPECT_EQ(BlocksOf({text, data::Gzip(text)}, 2), 1u);
}

}  // namespace
}  // namespace shoal::learn::sparse
