#include "rendezvous/launcher/task_output.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace shoal::rendezvous {
namespace {

TEST(TaskOutput, OfOneProcessIsWhatItPrinted) {
  TaskOutput output(1, {});
  EXPECT_EQ(output.Take(0, "a\nb"), "a\nb");
  EXPECT_EQ(output.Finish(), "");
  EXPECT_EQ(output.last_line(0), "b");
}

TEST(TaskOutput, OfSeveralHasTheirNumbersLineByLine) {
  TaskOutput output(3, {});
  EXPECT_EQ(output.Take(0, "one\ntw"), "[0] one\n");
  EXPECT_EQ(output.Take(2, "x\n\n"), "[2] x\n[2] \n");
  EXPECT_EQ(output.Take(0, "o\n"), "[0] two\n");
  EXPECT_EQ(output.Take(1, "tail"), "");
  EXPECT_EQ(output.Finish(), "[1] tail\n");
  EXPECT_EQ(output.last_line(0), "two");
  EXPECT_EQ(output.last_line(1), "tail");
}

TEST(TaskOutput, LinesWithoutAnEndAreCutAndNothingIsLost) {
  EXPECT_TRUE(rc::check([] {
    TaskOutput output(2, {});
    std::string fed, got;
    for (int n = *rc::gen::inRange(1, 6); n > 0; --n) {
      std::string part(static_cast<size_t>(*rc::gen::inRange(0, 100'000)), 'x');
      if (*rc::gen::arbitrary<bool>()) part += '\n';
      fed += part;
      got += output.Take(1, part);
    }
    got += output.Finish();
    size_t letters = 0;
    for (size_t at = 0; at < got.size();) {
      const size_t end = got.find('\n', at);
      RC_ASSERT(end != std::string::npos);
      RC_ASSERT(got.compare(at, 4, "[1] ") == 0);
      RC_ASSERT(end - at - 4 <= TaskOutput::kLongestLine);
      letters += end - at - 4;
      at = end + 1;
    }
    RC_ASSERT(letters == static_cast<size_t>(std::count(fed.begin(), fed.end(), 'x')));
  }));
}

TEST(TaskOutput, SeesLinesHoweverTheyComeInPieces) {
  const std::string text = "loading\nRuntimeError: NCCL error 7\r\nready\nlast ready";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    TaskOutput output(1, {"*NCCL error*", "ready", "nothing", "last*"});
    std::vector<int> matches;
    const auto take = [&] {
      for (int one; (one = output.TakeMatch()) >= 0;) matches.push_back(one);
    };
    for (size_t at = 0; at < text.size(); at += piece) {
      output.Take(0, std::string_view(text).substr(at, piece));
      take();
    }
    output.Finish();
    take();
    EXPECT_EQ(matches, (std::vector<int>{0, 1, 3})) << piece;
  }
}

}  // namespace
}  // namespace shoal::rendezvous
