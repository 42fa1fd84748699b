#include "controller/membership/desired_membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::controller {
namespace {

using rendezvous::JobEvent;
using testing::ElementsAre;
using testing::IsEmpty;

job::Job MakeJob() {
  job::Job job;
  job.roles.resize(2);
  job.roles[0].name = "worker";
  job.roles[0].replicas = 2;
  job.roles[0].min_replicas = 1;
  job.roles[0].max_replicas = 4;
  job.roles[1].name = "server";
  return job;
}

JobEvent Excluded(const std::string& role, const std::string& host) {
  JobEvent event;
  event.type = JobEvent::Type::kExcluded;
  event.role = role;
  event.body = {{"host", host}};
  return event;
}

JobEvent Scaled(int replicas) {
  JobEvent event;
  event.type = JobEvent::Type::kScaled;
  event.role = "worker";
  event.body = {{"replicas", replicas}};
  return event;
}

engine::TaskEvent Lost(const std::string& role, int index, int exit_code) {
  engine::TaskEvent event;
  event.role = role;
  event.index = index;
  event.phase = engine::TaskPhase::kLost;
  event.end.exit_code = exit_code;
  return event;
}

TEST(DesiredMembership, ASilentLauncherIsNotNamedUntilItHasEnded) {
  const job::Job job = MakeJob();
  DesiredMembership membership(&job);
  JobEvent silent;
  silent.type = JobEvent::Type::kTask;
  silent.role = "server";
  EXPECT_FALSE(membership.ApplyEvent(silent));  // lost, and made again by the engine itself
  silent.will_restart = true;
  EXPECT_TRUE(membership.ApplyEvent(silent));
  EXPECT_FALSE(membership.ApplyEvent(silent));
  EXPECT_TRUE(membership.IsReplaced("server", 0));
  EXPECT_FALSE(membership.IsReplaced("server", 1));
  EXPECT_FALSE(membership.ApplyEvent(Lost("worker", 0, 1)));
  engine::TaskEvent ended = Lost("server", 0, 0);
  ended.phase = engine::TaskPhase::kEnded;
  EXPECT_TRUE(membership.ApplyEvent(ended));
  EXPECT_FALSE(membership.IsReplaced("server", 0));
  EXPECT_FALSE(membership.ApplyEvent(ended));
}

TEST(DesiredMembership, WhoIsMadeAgainAvoidsItsRolesHosts) {
  const job::Job job = MakeJob();
  DesiredMembership membership(&job);
  EXPECT_FALSE(membership.ApplyEvent(Excluded("worker", "a")));  // what runs is left alone
  EXPECT_THAT(membership.excluded_hosts(), IsEmpty());
  EXPECT_TRUE(membership.ApplyEvent(Lost("worker", 1, job::kExitHostExcluded)));
  EXPECT_THAT(membership.excluded_hosts().at({"worker", 1}), ElementsAre("a"));
  EXPECT_FALSE(membership.excluded_hosts().contains({"worker", 0}));
  EXPECT_FALSE(membership.ApplyEvent(Lost("server", 0, 77)));  // of another role
  EXPECT_TRUE(membership.ApplyEvent(Lost("worker", 0, 77)));   // for whatever reason
  EXPECT_FALSE(membership.ApplyEvent(Lost("worker", 0, 77)));  // nothing new
  // A launcher that was still placed on such a host needs another Apply.
  EXPECT_TRUE(membership.ApplyEvent(Lost("worker", 0, job::kExitHostExcluded)));
  EXPECT_FALSE(membership.ApplyEvent(Excluded("worker", "a")));  // told again
}

TEST(DesiredMembership, TheEnginesWordMayComeFirst) {
  const job::Job job = MakeJob();
  DesiredMembership membership(&job);
  EXPECT_FALSE(membership.ApplyEvent(Lost("worker", 1, job::kExitHostExcluded)));
  EXPECT_TRUE(membership.ApplyEvent(Excluded("worker", "a")));
  EXPECT_THAT(membership.excluded_hosts().at({"worker", 1}), ElementsAre("a"));
}

TEST(DesiredMembership, NewcomersAvoidThemToo) {
  const job::Job job = MakeJob();
  DesiredMembership membership(&job);
  EXPECT_THAT(membership.members().at("worker"), ElementsAre(0, 1));
  membership.ApplyEvent(Excluded("worker", "a"));
  EXPECT_TRUE(membership.ApplyEvent(Scaled(3)));
  EXPECT_THAT(membership.members().at("worker"), ElementsAre(0, 1, 2));
  EXPECT_THAT(membership.excluded_hosts().at({"worker", 2}), ElementsAre("a"));
  EXPECT_FALSE(membership.excluded_hosts().contains({"worker", 0}));
}

}  // namespace
}  // namespace shoal::controller
