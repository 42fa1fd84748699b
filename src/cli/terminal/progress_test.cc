// Status block, plain line and sanitizing of output, compared with expected texts.

#include "cli/terminal/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/utf8.h"
#include "cli/terminal/styled_line.h"

namespace shoal::cli {
namespace {

using rendezvous::JobEvent;
using testing::ElementsAre;
using testing::HasSubstr;

job::Job TwoRoles(int workers) {
  job::Job job;
  job.roles.resize(2);
  job.roles[0].name = "server";
  job.roles[1].name = "worker";
  job.roles[1].replicas = workers;
  return job;
}

JobEvent StateOf(const std::string& role, int index, job::TaskState state) {
  JobEvent event;
  event.type = JobEvent::Type::kTask;
  event.role = role;
  event.index = index;
  event.task_state = state;
  return event;
}

JobEvent ProgressOf(int index, json::object body) {
  JobEvent event;
  event.type = JobEvent::Type::kProgress;
  event.role = "worker";
  event.index = index;
  event.body = std::move(body);
  return event;
}

// Two workers half way, one server.
ProgressModel HalfWay() {
  ProgressModel model = MakeProgress("text8-7f3a9c", TwoRoles(2));
  model.state = job::JobState::kRunning;
  Apply(StateOf("server", 0, job::TaskState::kRunning), &model);
  for (int i = 0; i < 2; ++i) Apply(StateOf("worker", i, job::TaskState::kRunning), &model);
  Apply(ProgressOf(0, {{"step", 40e6},
                       {"total", 100e6},
                       {"rate", 2e6},
                       {"unit", "words"},
                       {"loss", 0.2},
                       {"lr", 0.0125},
                       {"phase", "train"}}),
        &model);
  Apply(ProgressOf(1, {{"step", 60e6},
                       {"total", 100e6},
                       {"rate", 2e6},
                       {"unit", "words"},
                       {"loss", 0.3},
                       {"lr", 0.0125},
                       {"phase", "train"}}),
        &model);
  return model;
}

constexpr RenderOptions kAscii{80, 24, false, false};

TEST(RenderBlockTest, HalfWay) {
  EXPECT_THAT(
      RenderBlock(HalfWay(), std::chrono::milliseconds(12345), kAscii),
      ElementsAre("text8-7f3a9c  running  12 s",
                  "train  ######......  50.0 %  4.00 M words/s  loss 0.25  lr 0.0125  25 s left",
                  "  server-0  running", "  worker-0  running     40 %  2.00 M words/s",
                  "  worker-1  running     60 %  2.00 M words/s"));
}

TEST(RenderBlockTest, WideTerminalShowsEverything) {
  const auto lines = RenderBlock(HalfWay(), std::chrono::seconds(12), {120, 24, false, true});
  EXPECT_EQ(
      lines[1],
      "train  ████████████████████░░░░░░░░░░░░░░░░░░░░  50.0 %  4.00 M words/s  loss 0.25  lr "
      "0.0125  25 s left");
}

TEST(RenderBlockTest, NothingReportedYet) {
  ProgressModel model = MakeProgress("job-1", TwoRoles(1));
  model.why = "waits for big-2, which holds 4 GiB";
  EXPECT_THAT(RenderBlock(model, Duration(0), kAscii),
              ElementsAre("job-1  pending  waits for big-2, which holds 4 GiB",
                          "  server-0  created", "  worker-0  created"));
}

TEST(RenderBlockTest, EndsAndRestartsAreNamed) {
  ProgressModel model = MakeProgress("job-1", TwoRoles(3));
  JobEvent end = StateOf("worker", 0, job::TaskState::kEnded);
  end.end = job::Exited(0);
  Apply(end, &model);
  end.index = 1;
  end.end = job::Exited(7);
  Apply(end, &model);
  end.index = 2;
  end.will_restart = true;
  end.attempt = 1;
  Apply(end, &model);
  const auto lines = RenderBlock(model, Duration(0), kAscii);
  EXPECT_EQ(lines[2], "  worker-0  done");
  EXPECT_EQ(lines[3], "  worker-1  exited with 7");
  EXPECT_EQ(lines[4], "  worker-2  restarting  attempt 2");
}

TEST(RenderBlockTest, ManyTasksAreSummedUp) {
  ProgressModel model = MakeProgress("job-1", TwoRoles(100));
  for (int i = 0; i < 60; ++i) Apply(StateOf("worker", i, job::TaskState::kRunning), &model);
  const auto lines = RenderBlock(model, Duration(0), {80, 10, false, false});
  EXPECT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines.back(), "  and 95 more: 40 created, 55 running");
}

TEST(RenderBlockTest, ColoursAreClosed) {
  const auto lines = RenderBlock(HalfWay(), Duration(0), {80, 24, true, false});
  EXPECT_EQ(lines[0], "\x1b[1mtext8-7f3a9c\x1b[0m  \x1b[32mrunning\x1b[0m");
}

TEST(RenderBlockTest, NoLineIsWiderThanTheTerminal) {
  rc::check([] {
    ProgressModel model = HalfWay();
    model.why = *rc::gen::container<std::string>(rc::gen::inRange('a', 'z'));
    const int width = *rc::gen::inRange(1, 200);
    const int height = *rc::gen::inRange(1, 60);
    for (const std::string& line :
         RenderBlock(model, std::chrono::seconds(3), {width, height, false, true}))
      RC_ASSERT(Columns(line) <= width);
  });
}

TEST(RenderPlainTest, OneLine) {
  EXPECT_EQ(RenderPlain(HalfWay()),
            "train 50.0 %, 4.00 M words/s, loss 0.25, lr 0.0125, 25 s left");
  EXPECT_EQ(RenderPlain(MakeProgress("x", TwoRoles(1))), "");
}

TEST(RenderPlainTest, ExchangeIsTheMeanByRate) {
  ProgressModel model = MakeProgress("x", TwoRoles(2));
  for (int worker = 0; worker < 2; ++worker) {
    Apply(ProgressOf(worker, {{"step", 50e6},
                              {"total", 100e6},
                              {"rate", worker == 0 ? 3e6 : 1e6},
                              {"unit", "words"},
                              {"phase", "train"},
                              {"exchange", worker == 0 ? 0.04 : 0.24},
                              {"bytes_per_step", worker == 0 ? 20.0 : 64.0}}),
          &model);
  }
  EXPECT_EQ(RenderPlain(model), "train 50.0 %, 4.00 M words/s, exchange 9 %, 31 B/word, 25 s left");
  Apply(ProgressOf(0, {{"rate", 1e6}, {"bytes_per_step", 4444.4}}), &model);
  Apply(ProgressOf(1, {{"rate", 1e6}, {"bytes_per_step", 4444.4}}), &model);
  EXPECT_EQ(RenderPlain(model), "50.0 %, 2.00 M words/s, 4.44 kB/word, 50 s left");
}

TEST(SummarizeTest, EndedTaskCountsWithItsWorkButNotItsRate) {
  ProgressModel model = HalfWay();
  Apply(ProgressOf(1, {{"step", 100e6}, {"total", 100e6}, {"rate", 2e6}, {"phase", "train"}}),
        &model);
  JobEvent end = StateOf("worker", 1, job::TaskState::kEnded);
  end.end = job::Exited(0);
  Apply(end, &model);
  const ProgressSummary overall = Summarize(model);
  EXPECT_DOUBLE_EQ(*overall.fraction, 0.7);
  EXPECT_DOUBLE_EQ(*overall.rate, 2e6);
  EXPECT_EQ(*overall.left, std::chrono::seconds(30));
}

TEST(SummarizeTest, SavingKeepsWhatWasReached) {
  ProgressModel model = HalfWay();
  Apply(ProgressOf(0, {{"phase", "save"}}), &model);
  EXPECT_EQ(Summarize(model).phase, "train");  // the other one still trains
  EXPECT_DOUBLE_EQ(*Summarize(model).fraction, 0.5);
  EXPECT_DOUBLE_EQ(*Summarize(model).rate, 2e6);
  Apply(ProgressOf(1, {{"phase", "save"}}), &model);
  EXPECT_EQ(RenderPlain(model), "save 50.0 %, loss 0.25, lr 0.0125");
}

TEST(SummarizeTest, NonsenseIsHarmless) {
  ProgressModel model = MakeProgress("x", TwoRoles(1));
  Apply(ProgressOf(0, {{"step", -5}, {"total", 0}, {"rate", "fast"}, {"eta_s", 1e300}}), &model);
  const ProgressSummary overall = Summarize(model);
  EXPECT_FALSE(overall.fraction);
  EXPECT_FALSE(overall.rate);
  EXPECT_FALSE(overall.left);
  JobEvent foreign = StateOf("nobody", 3, job::TaskState::kRunning);
  Apply(foreign, &model);
  EXPECT_EQ(model.tasks.size(), 2u);
}

TEST(FormatCountTest, ThreeDigits) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(312), "312");
  EXPECT_EQ(FormatCount(4210000), "4.21 M");
  EXPECT_EQ(FormatCount(42100000), "42.1 M");
  EXPECT_EQ(FormatCount(999.6), "1.00 k");
  EXPECT_EQ(FormatCount(3.25e9), "3.25 G");
}

TEST(DescribeTaskTest, EndWithLastLine) {
  JobEvent event = StateOf("worker", 3, job::TaskState::kEnded);
  event.end = job::Exited(1);
  event.last_line = "no such file";
  event.will_restart = true;
  EXPECT_EQ(DescribeTask(event), "worker-3 exited with 1; last output: no such file; restarting");
  // The end that fails the job is reported in full by the job's own end.
  event.will_restart = false;
  EXPECT_EQ(DescribeTask(event), "worker-3 exited with 1");
}

TEST(SafeForTerminalTest, OnlyTextTabsAndColours) {
  EXPECT_EQ(SafeForTerminal("plain\ttext"), "plain\ttext");
  EXPECT_EQ(SafeForTerminal("a\x1b[31mred"), "a\x1b[31mred\x1b[0m");
  EXPECT_EQ(SafeForTerminal("up\x1b[2Adown\x1b[Jgone"), "updowngone");
  EXPECT_EQ(SafeForTerminal("title\x1b]0;evil\a!"), "title!");
  EXPECT_EQ(SafeForTerminal("bar\rover\b\x07"), "barover");
  EXPECT_EQ(SafeForTerminal("\xff\xc3(\xc3\xa4"), "\xef\xbf\xbd\xef\xbf\xbd(\xc3\xa4");
  EXPECT_EQ(SafeForTerminal("\xc2\x9b"
                            "31m"),
            "31m");
  EXPECT_EQ(SafeForTerminal("cut\x1b"), "cut");
}

TEST(SafeForTerminalTest, NoControlCharacterEverPasses) {
  rc::check([](const std::string& bytes) {
    const std::string safe = SafeForTerminal(bytes);
    for (size_t i = 0; i < safe.size(); ++i) {
      const auto byte = static_cast<unsigned char>(safe[i]);
      if (byte == 0x1b) {
        RC_ASSERT(safe.find('m', i) != std::string::npos);
      } else {
        RC_ASSERT(byte >= 0x20 || byte == '\t');
      }
    }
    RC_ASSERT(ValidUtf8(safe) == safe);
  });
}

}  // namespace
}  // namespace shoal::cli
