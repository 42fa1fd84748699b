#include "rendezvous/launcher/report_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace shoal::rendezvous {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ReportQueueTest : public testing::Test {
 protected:
  EndedMessage EndOf(int attempt) {
    EndedMessage ended;
    ended.attempt = attempt;
    ended.log_bytes = 100 * attempt;
    return ended;
  }
  // The types of the messages that SendResults and SendEnds send now.
  std::vector<std::string> Sent() {
    std::vector<std::string> types;
    messages_.clear();
    const ReportQueue::Send send = [&](const std::string& type, json::object message) {
      types.push_back(type);
      messages_.push_back(std::move(message));
    };
    queue_.SendResults(send);
    queue_.SendEnds([&](int attempt) { return log_sent_.contains(attempt); }, send);
    return types;
  }

  ReportQueue queue_;
  std::set<int> log_sent_{1, 2};
  std::vector<json::object> messages_;
};

TEST_F(ReportQueueTest, EverythingIsSentOnceOnAConnectionAndAgainOnTheNext) {
  queue_.BeginAttempt();
  queue_.AddResult({{"attempt", 1}});
  queue_.AddEnd(EndOf(1), false);
  EXPECT_THAT(Sent(), ElementsAre("report", "ended"));
  EXPECT_EQ(messages_.at(0).at("number").to_number<int>(), 0);
  EXPECT_THAT(Sent(), IsEmpty());
  queue_.Rewind();
  EXPECT_THAT(Sent(), ElementsAre("report", "ended"));
}

TEST_F(ReportQueueTest, AnEndFollowsTheLastByteOfItsLog) {
  log_sent_.clear();
  queue_.AddEnd(EndOf(1), true);
  EXPECT_THAT(Sent(), IsEmpty());
  log_sent_.insert(1);
  EXPECT_THAT(Sent(), ElementsAre("log_grew", "ended"));
  EXPECT_EQ(messages_.at(0).at("bytes").to_number<int>(), 100);
}

TEST_F(ReportQueueTest, AnEndWaitsForItsOutputsAndTellsThatTheyAreLost) {
  queue_.AddEnd(EndOf(1), false);
  queue_.HoldForOutputs();
  EXPECT_THAT(Sent(), IsEmpty());
  queue_.OutputsStored(Cancelled("the job was killed"));
  EXPECT_THAT(Sent(), ElementsAre("ended"));
  EXPECT_EQ(messages_.at(0).at("outputs_lost").as_string(), "the job was killed");
}

TEST_F(ReportQueueTest, AnAcknowledgementCoversEarlierEnds) {
  queue_.AddEnd(EndOf(1), false);
  queue_.AddEnd(EndOf(2), false);
  queue_.Acknowledge(1);
  EXPECT_FALSE(queue_.empty());
  EXPECT_THAT(Sent(), ElementsAre("ended"));
  queue_.Acknowledge(2);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ReportQueueTest, ResultsBelongToOneAttemptAndMarksToOneConnection) {
  int sent = 0;
  const ReportQueue::Send count = [&](const std::string&, const json::object&) { ++sent; };
  queue_.AddResult({{"attempt", 1}});
  queue_.SendReady(1, count);
  queue_.SendReady(1, count);
  queue_.SendPortConflict(1, "port 80 is taken", count);
  EXPECT_EQ(sent, 2);
  queue_.BeginAttempt();
  EXPECT_THAT(Sent(), IsEmpty());
  queue_.SendReady(2, count);
  queue_.Rewind();
  queue_.SendReady(2, count);
  EXPECT_EQ(sent, 4);
}

}  // namespace
}  // namespace shoal::rendezvous
