// Two operators and one lease, without a clock that both can trust; and the queue of keys.
#include "api/operator/operator_lease.h"

#include <gtest/gtest.h>

#include <thread>

#include "api/operator/due_queue.h"
#include "api/operator/server_jobs.h"

namespace shoal::api {
namespace {

using std::chrono::seconds;

LeaseView After(const json::object& change, const std::string& version) {
  json::object object = change;
  object["metadata"] = json::object{{"resourceVersion", version}};
  return DecodeLease(object).value();
}

TEST(OperatorLeaseTest, OneHoldsItUntilItStopsRenewing) {
  FakeClock clock;
  OperatorLease first("a");
  OperatorLease second("b");
  LeaseView lease;
  lease.version = "1";

  const auto taken = first.Attempt(lease, clock.Now(), clock.Wall());
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->at("metadata").at("resourceVersion"), "1");
  EXPECT_EQ(taken->at("spec").at("leaseTransitions"), 1);
  EXPECT_FALSE(first.held(clock.Now())) << "it is not written yet";
  first.Acquired(clock.Now());
  EXPECT_TRUE(first.held(clock.Now()));

  lease = After(*taken, "2");
  EXPECT_FALSE(second.Attempt(lease, clock.Now(), clock.Wall()));
  EXPECT_EQ(second.other(), "a");
  clock.Advance(seconds(14));
  EXPECT_FALSE(second.Attempt(lease, clock.Now(), clock.Wall()));
  const auto renewed = first.Attempt(lease, clock.Now(), clock.Wall());
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->at("spec").at("leaseTransitions"), 1);
  first.Acquired(clock.Now());
  lease = After(*renewed, "3");
  EXPECT_FALSE(second.Attempt(lease, clock.Now(), clock.Wall()));

  clock.Advance(seconds(15));  // without a renewal
  EXPECT_FALSE(first.held(clock.Now())) << "before another one may take it";
  const auto stolen = second.Attempt(lease, clock.Now(), clock.Wall());
  ASSERT_TRUE(stolen);
  EXPECT_EQ(stolen->at("spec").at("holderIdentity"), "b");
  EXPECT_EQ(stolen->at("spec").at("leaseTransitions"), 2);
}

TEST(OperatorLeaseTest, AReleasedLeaseIsFreeAtOnce) {
  FakeClock clock;
  OperatorLease first("a");
  OperatorLease second("b");
  LeaseView lease;
  lease.version = "1";
  lease = After(*first.Attempt(lease, clock.Now(), clock.Wall()), "2");
  EXPECT_FALSE(second.Attempt(lease, clock.Now(), clock.Wall()));
  lease = After(first.Release(lease, clock.Wall()), "3");
  EXPECT_TRUE(second.Attempt(lease, clock.Now(), clock.Wall()));
}

TEST(OperatorLeaseTest, TheNextServerOfAStoreNeedNotWait) {
  FakeClock clock;
  OperatorLease killed("a");
  LeaseView lease;
  lease.version = "1";
  lease = After(*killed.Attempt(lease, clock.Now(), clock.Wall()), "2");
  OperatorLease next("a");
  EXPECT_TRUE(next.Attempt(lease, clock.Now(), clock.Wall()));
}

TEST(OperatorLeaseTest, HostileLeases) {
  EXPECT_FALSE(DecodeLease({}).ok());
  const auto lease = DecodeLease(
      ParseJsonObject(
          R"({"metadata":{"resourceVersion":"1"},"spec":{"holderIdentity":7,"leaseDurationSeconds":1e300}})")
          .value());
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(lease->holder, "");
  EXPECT_LE(lease->seconds, 3600);
}

TEST(DueQueueTest, GivesEachKeyOnceAtItsEarliestTime) {
  DueQueue<int> queue;
  const TimePoint now = FakeClock().Now();
  queue.Add(1, now + seconds(5));
  queue.Add(2, now + seconds(1));
  queue.Add(1, now + seconds(9));  // later: no effect
  queue.Add(1, now);
  EXPECT_EQ(queue.Take(now), 1);
  EXPECT_EQ(queue.Take(now), std::nullopt);
  EXPECT_EQ(queue.Take(now + seconds(1)), 2);
  EXPECT_EQ(queue.Take(now + seconds(100)), std::nullopt);
}

TEST(DueQueueTest, CloseEndsAWait) {
  DueQueue<int> queue;
  queue.Add(1, RealClock::Get()->Now());
  EXPECT_EQ(queue.Wait(*RealClock::Get()), 1);
  std::thread closer([&queue] { queue.Close(); });
  EXPECT_EQ(queue.Wait(*RealClock::Get()), std::nullopt);
  closer.join();
}

TEST(OperatorTeamsTest, ParsesTheArguments) {
  EXPECT_EQ(ParseOperatorTeams({})->others, "default");
  const auto teams = ParseOperatorTeams({"research=red", "*=blue"});
  ASSERT_TRUE(teams.ok());
  EXPECT_EQ(teams->by_namespace.at("research"), "red");
  EXPECT_EQ(teams->others, "blue");
  EXPECT_EQ(ParseOperatorTeams({"research=red"})->others, "");
  for (const char* const wrong : {"red", "=red", "research=", ""})
    EXPECT_EQ(ParseOperatorTeams({wrong}).status().code(), Code::kInvalidArgument) << wrong;
  EXPECT_FALSE(ParseOperatorTeams({"a=red", "a=blue"}).ok());
}

}  // namespace
}  // namespace shoal::api
