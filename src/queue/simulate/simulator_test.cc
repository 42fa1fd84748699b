#include "queue/simulate/simulator.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "queue/core/run_times.h"
#include "queue/simulate/report.h"

namespace shoal::queue {
namespace {

Trace Parse(const std::string& text) {
  Result<Trace> trace = ParseTrace(text, "e.jsonl");
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  return trace.ok() ? std::move(*trace) : Trace();
}

TEST(Trace, ReadsWhatItWrites) {
  const Result<Scenario> scenario = GenerateTrace("cluster", 200, 3);
  ASSERT_TRUE(scenario.ok());
  const std::string text = TraceText(scenario->trace);
  EXPECT_EQ(TraceText(Parse(text)), text);
}

TEST(Trace, MistakesNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"t\":1,\"event\":\"submit\",\"job\":\"a\"}\nnonsense\n",
       "e.jsonl:2: expected an object of numbers and texts without escapes"},
      {"{\"t\":1,\"event\":\"submitt\",\"job\":\"a\"}",
       "e.jsonl:1: event: got 'submitt', expected submit, cancel or machines; did you mean "
       "'submit'?"},
      {"{\"t\":1,\"event\":\"submit\",\"job\":\"a\",\"gpus\":1}",
       "e.jsonl:1: got the unknown field 'gpus'; did you mean 'gpu'?"},
      {"{\"event\":\"submit\",\"job\":\"a\"}", "e.jsonl:1: got no t, expected the time in seconds"},
      {"{\"t\":1,\"event\":\"submit\"}", "e.jsonl:1: got no job, expected its id"},
      {"{\"t\":1,\"event\":\"submit\",\"job\":\"a\",\"gpu\":-1}",
       "e.jsonl:1: gpu: got a negative number"},
      {"{\"t\":1,\"event\":\"submit\",\"job\":\"a\",\"memory\":\"8Gu\"}",
       "e.jsonl:1: memory: got '8Gu', expected a size such as 8Gi"},
      {"{\"t\":1,\"event\":\"cancel\",\"job\":\"a\"}",
       "e.jsonl: the cancelled job 'a' was not submitted before, expected its submission first"},
  };
  for (const auto& [text, message] : cases) {
    const Result<Trace> trace = ParseTrace(text, "e.jsonl");
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_EQ(trace.status().message(), message);
  }
}

TEST(Trace, SurvivesDamagedLines) {
  const Result<Scenario> scenario = GenerateTrace("cluster", 20, 3);
  const std::string good = TraceText(scenario->trace);
  EXPECT_TRUE(rc::check([&] {
    std::string text = good;
    for (int i = *rc::gen::inRange(1, 6); i > 0; --i)
      text[*rc::gen::inRange<size_t>(0, text.size())] =
          *rc::gen::elementOf(std::string("\"{}:,0e-x\\\n"));
    const Result<Trace> trace = ParseTrace(text, "e.jsonl");
    RC_ASSERT(trace.ok() || trace.status().code() == Code::kInvalidArgument);
  }));
}

TEST(Simulator, FollowsJobsThroughPreemption) {
  Trace trace = Parse(R"({"t":0,"event":"machines","flavor":"a","gpu":4}
{"t":0,"event":"submit","job":"low","gpu":4,"run":100}
{"t":50,"event":"submit","job":"high","gpu":2,"run":10,"priority":5}
{"t":55,"event":"submit","job":"late","gpu":2,"run":10}
{"t":56,"event":"cancel","job":"late"}
)");
  const Result<SimulationResult> result = Simulate(trace, DefaultPolicy({"a"}));
  ASSERT_TRUE(result.ok());
  const auto seconds = [](Millis time) { return time.count() / 1000; };
  // low runs 50 s, saves nothing, stops in 30 s, and runs its 100 s when high has ended.
  EXPECT_EQ(seconds(result->jobs[1].started), 80);
  EXPECT_EQ(seconds(result->jobs[1].ended), 90);
  EXPECT_EQ(result->jobs[0].preempted, 1);
  EXPECT_EQ(result->jobs[0].lost, 50);
  EXPECT_EQ(seconds(result->jobs[0].ended), 190);
  EXPECT_EQ(result->jobs[2].started, kForever);
  const SimulationSummary summary = Summarize(trace, *result);
  EXPECT_EQ(summary.ended, 2);
  EXPECT_EQ(summary.preemptions, 1);
}

TEST(Simulator, ElasticJobsDoTheirWorkAtTheSizeTheyHave) {
  Trace trace = Parse(R"({"t":0,"event":"machines","flavor":"a","gpu":4}
{"t":0,"event":"submit","job":"e","gpu":1,"tasks":2,"min":1,"max":4,"run":100}
)");
  const Result<SimulationResult> result = Simulate(trace, DefaultPolicy({"a"}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->jobs[0].ended, std::chrono::seconds(50));
}

TEST(Simulator, RunTimesAreLearnedFromTheLastTwoRuns) {
  RunTimes run_times;
  EXPECT_EQ(run_times.Expect("ann/1"), Millis(0));
  for (const int64_t run : {100, 300, 500}) run_times.Learn("ann/1", Millis(run));
  EXPECT_EQ(run_times.Expect("ann/1"), Millis(400));
  // The third job of ann is known to be brief when it comes, and starts beside the reserved one.
  Trace trace = Parse(R"({"t":0,"event":"machines","flavor":"a","gpu":4}
{"t":0,"event":"submit","job":"a","user":"ann","gpu":1,"run":10}
{"t":20,"event":"submit","job":"b","user":"bob","gpu":3,"run":1000,"expected":1000}
{"t":21,"event":"submit","job":"c","user":"bob","gpu":4,"run":10,"expected":10}
{"t":22,"event":"submit","job":"d","user":"ann","gpu":1,"run":10}
)");
  SimulationOptions options;
  const Result<SimulationResult> with = Simulate(trace, DefaultPolicy({"a"}), options);
  options.learn_run_times = false;
  const Result<SimulationResult> without = Simulate(trace, DefaultPolicy({"a"}), options);
  EXPECT_EQ(with->jobs[3].waited, Millis(0));
  EXPECT_GT(without->jobs[3].waited, Millis(0));
}

TEST(Simulator, UnknownQueuesAreErrors) {
  Trace trace = Parse("{\"t\":0,\"event\":\"submit\",\"job\":\"e\",\"queue\":\"x\"}\n");
  EXPECT_EQ(Simulate(trace, DefaultPolicy({"a"})).status().code(), Code::kNotFound);
}

TEST(Simulator, EveryJobOfKueuesBaselineEnds) {
  const Result<Scenario> scenario = GenerateTrace("kueue-baseline", 0, 1);
  ASSERT_TRUE(scenario.ok());
  EXPECT_EQ(scenario->trace.jobs.size(), 15'000u);
  const Result<SimulationResult> result = Simulate(scenario->trace, scenario->policy);
  ASSERT_TRUE(result.ok());
  for (const JobOutcome& job : result->jobs) EXPECT_LT(job.ended, kForever);
}

TEST(Simulator, ShapesHaveKueuesCounts) {
  for (const auto& [shape, jobs, queues] : {std::tuple("kueue-large", 50'000u, 1'010u),
                                            std::tuple("kueue-large-2026", 60'000u, 2'020u)}) {
    const Result<Scenario> scenario = GenerateTrace(shape, 0, 1);
    ASSERT_TRUE(scenario.ok());
    EXPECT_EQ(scenario->trace.jobs.size(), jobs);
    EXPECT_EQ(scenario->policy.queues.size(), queues);
  }
}

TEST(Report, ComparesPolicies) {
  Trace trace = Parse(R"({"t":0,"event":"machines","flavor":"a","gpu":4}
{"t":0,"event":"submit","job":"a","gpu":3,"run":100,"expected":100}
{"t":1,"event":"submit","job":"b","gpu":4,"run":100,"expected":100}
{"t":2,"event":"submit","job":"c","gpu":1,"run":50,"expected":50}
)");
  Policy fifo = DefaultPolicy({"a"});
  fifo.backfill = false;
  std::vector<SimulatedPolicy> policies(2);
  policies[0] = {"fifo", *Simulate(trace, fifo)};
  policies[1] = {"backfill", *Simulate(trace, DefaultPolicy({"a"}))};
  const std::string text = ReportText(trace, policies, 5);
  EXPECT_NE(text.find("1 jobs wait less, 0 wait longer"), std::string::npos) << text;
  EXPECT_EQ(policies[1].result.jobs[2].waited, Millis(0));
  EXPECT_EQ(policies[1].result.jobs[1].started, policies[0].result.jobs[1].started);
  EXPECT_NE(ReportSvg(trace, policies).find("polyline"), std::string::npos);
}

}  // namespace
}  // namespace shoal::queue
