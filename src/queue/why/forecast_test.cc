#include "queue/why/forecast.h"

#include <gtest/gtest.h>

namespace shoal::queue {
namespace {

using std::chrono::seconds;

class ForecastTest : public ::testing::Test {
 protected:
  ForecastTest()
      : scheduler_(DefaultPolicy({"a"}), [] {
          FlavorMachines machines;
          machines.total[2] = 4000;
          return std::map<std::string, FlavorMachines>{{"a", machines}};
        }()) {}
  JobSpec Spec(const std::string& id, int64_t gpus, int64_t run, double confidence = 1) {
    JobSpec spec;
    spec.id = spec.name = id;
    spec.order = ++order_;
    spec.run_time = seconds(run);
    spec.confidence = confidence;
    spec.request.unit = {{0, 0, gpus * 1000}};
    return spec;
  }
  JobRef Submit(const JobSpec& spec, Millis now = Millis(0)) {
    const JobRef job = *scheduler_.Submit(spec, now);
    scheduler_.Decide(now);
    return job;
  }

  Scheduler scheduler_;
  int64_t order_ = 0;
};

TEST_F(ForecastTest, AJobBehindOthersStartsWhenTheyHaveEnded) {
  Submit(Spec("running", 4, 100));
  Submit(Spec("next", 4, 50));
  const JobRef last = Submit(Spec("last", 3, 10));
  const Forecast forecast = ForecastStart(scheduler_, last);
  EXPECT_EQ(forecast.at, seconds(150));
  EXPECT_DOUBLE_EQ(forecast.confidence, 1);
  EXPECT_EQ(ForecastText(forecast, seconds(90)), "expected to start in 60 s at the latest");
  EXPECT_EQ(scheduler_.job(last).phase, Phase::kWaiting);  // nothing has changed
}

TEST_F(ForecastTest, LearntRunTimesMakeItLessSure) {
  Submit(Spec("running", 4, 100, 0.8));
  const JobRef job = Submit(Spec("job", 4, 10));
  const Forecast forecast = ForecastStart(scheduler_, job);
  EXPECT_EQ(forecast.at, seconds(100));
  EXPECT_EQ(ForecastText(forecast, Millis(0)), "expected to start in about 100 s (80 % sure)");
}

TEST_F(ForecastTest, WithoutRunTimesItIsUnknown) {
  Submit(Spec("running", 4, 0));
  const JobRef job = Submit(Spec("job", 4, 10));
  EXPECT_EQ(ForecastStart(scheduler_, job).at, kForever);
  EXPECT_EQ(ForecastText(ForecastStart(scheduler_, job), Millis(0)), "");
}

TEST_F(ForecastTest, AJobThatOverranIsExpectedToRunTwiceAsLong) {
  Submit(Spec("running", 4, 100));
  const JobRef job = Submit(Spec("job", 4, 10), seconds(200));
  EXPECT_EQ(ForecastStart(scheduler_, job).at, seconds(400));
}

TEST_F(ForecastTest, ASubmissionIsTriedBeforeItIsMade) {
  const SubmissionTrial now = *TrySubmission(scheduler_, Spec("x", 4, 0), Millis(0));
  EXPECT_TRUE(now.starts);
  EXPECT_EQ(now.flavor, "a");
  EXPECT_EQ(scheduler_.Find("x"), kNoIndex);
  Submit(Spec("running", 2, 60));
  const SubmissionTrial later = *TrySubmission(scheduler_, Spec("x", 4, 0), Millis(0));
  EXPECT_FALSE(later.starts);
  EXPECT_EQ(later.reason,
            "first in line; needs 4 GPU and 2 GPU is free; running holds 2 GPU; "
            "expected to start in 60 s");
  EXPECT_EQ(later.forecast.at, seconds(60));
  const SubmissionTrial never = *TrySubmission(scheduler_, Spec("x", 5, 0), Millis(0));
  EXPECT_TRUE(never.refused);
  EXPECT_NE(never.reason.find("can never start"), std::string::npos) << never.reason;
  JobSpec high = Spec("high", 4, 0);
  high.priority = 1;
  const SubmissionTrial preempts = *TrySubmission(scheduler_, high, Millis(0));
  EXPECT_TRUE(preempts.starts);
  EXPECT_TRUE(preempts.preempts);
  JobSpec elsewhere = Spec("x", 1, 0);
  elsewhere.queue = "nowhere";
  EXPECT_EQ(TrySubmission(scheduler_, elsewhere, Millis(0)).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace shoal::queue
