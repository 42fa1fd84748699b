#include "controller/roster.h"

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

TEST(Roster, ASilentLauncherIsNotNamedUntilItHasEnded) {
  const job::Job job = MakeJob();
  Roster roster(&job);
  JobEvent silent;
  silent.type = JobEvent::Type::kTask;
  silent.role = "server";
  EXPECT_FALSE(roster.Take(silent));  // lost, and made again by the engine itself
  silent.will_restart = true;
  EXPECT_TRUE(roster.Take(silent));
  EXPECT_FALSE(roster.Take(silent));
  EXPECT_TRUE(roster.IsReplaced("server", 0));
  EXPECT_FALSE(roster.IsReplaced("server", 1));
  EXPECT_FALSE(roster.Take(Lost("worker", 0, 1)));
  engine::TaskEvent ended = Lost("server", 0, 0);
  ended.phase = engine::TaskPhase::kEnded;
  EXPECT_TRUE(roster.Take(ended));
  EXPECT_FALSE(roster.IsReplaced("server", 0));
  EXPECT_FALSE(roster.Take(ended));
}

TEST(Roster, WhoIsMadeAgainAvoidsItsRolesHosts) {
  const job::Job job = MakeJob();
  Roster roster(&job);
  EXPECT_FALSE(roster.Take(Excluded("worker", "a")));  // what runs is left alone
  EXPECT_THAT(roster.avoided(), IsEmpty());
  EXPECT_TRUE(roster.Take(Lost("worker", 1, job::kExitHostExcluded)));
  EXPECT_THAT(roster.avoided().at({"worker", 1}), ElementsAre("a"));
  EXPECT_FALSE(roster.avoided().contains({"worker", 0}));
  EXPECT_FALSE(roster.Take(Lost("server", 0, 77)));  // of another role
  EXPECT_TRUE(roster.Take(Lost("worker", 0, 77)));   // for whatever reason
  EXPECT_FALSE(roster.Take(Lost("worker", 0, 77)));  // nothing new
  // … but a launcher that came to such a host all the same needs another word.
  EXPECT_TRUE(roster.Take(Lost("worker", 0, job::kExitHostExcluded)));
  EXPECT_FALSE(roster.Take(Excluded("worker", "a")));  // told again
}

TEST(Roster, TheEnginesWordMayComeFirst) {
  const job::Job job = MakeJob();
  Roster roster(&job);
  EXPECT_FALSE(roster.Take(Lost("worker", 1, job::kExitHostExcluded)));
  EXPECT_TRUE(roster.Take(Excluded("worker", "a")));
  EXPECT_THAT(roster.avoided().at({"worker", 1}), ElementsAre("a"));
}

TEST(Roster, NewcomersAvoidThemToo) {
  const job::Job job = MakeJob();
  Roster roster(&job);
  EXPECT_THAT(roster.members().at("worker"), ElementsAre(0, 1));
  roster.Take(Excluded("worker", "a"));
  EXPECT_TRUE(roster.Take(Scaled(3)));
  EXPECT_THAT(roster.members().at("worker"), ElementsAre(0, 1, 2));
  EXPECT_THAT(roster.avoided().at({"worker", 2}), ElementsAre("a"));
  EXPECT_FALSE(roster.avoided().contains({"worker", 0}));
}

}  // namespace
}  // namespace shoal::controller
