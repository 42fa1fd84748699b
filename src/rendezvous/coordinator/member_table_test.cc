#include "rendezvous/coordinator/member_table.h"

#include <gtest/gtest.h>

#include "rendezvous/coordinator/fake_connection.h"

namespace shoal::rendezvous {
namespace {

class MemberTableTest : public testing::Test {
 protected:
  MemberId Connect(FakeLog* log, Member::Role role) {
    const MemberId id = members_.NextId();
    members_.Add(id, std::make_unique<FakeConnection>(log));
    members_.Find(id)->role = role;
    return id;
  }
  MemberTable members_;
};

TEST_F(MemberTableTest, NumbersAreNotReusedAndGoneMembersAreNotFound) {
  FakeLog log;
  const MemberId first = Connect(&log, Member::Role::kLauncher);
  EXPECT_NE(members_.ConnectionOf(first), nullptr);
  EXPECT_TRUE(members_.Remove(first).has_value());
  EXPECT_FALSE(members_.Remove(first).has_value());
  EXPECT_EQ(members_.ConnectionOf(first), nullptr);
  EXPECT_TRUE(members_.empty());
  EXPECT_NE(Connect(&log, Member::Role::kLauncher), first);
  members_.Close(first, "it has gone");
  EXPECT_EQ(log.closed, "");
}

TEST_F(MemberTableTest, TheControllerOfALaterLeaderSupersedesTheEarlierOne) {
  FakeLog earlier, later, launcher;
  const MemberId a = Connect(&earlier, Member::Role::kController);
  const MemberId task = Connect(&launcher, Member::Role::kLauncher);
  EXPECT_TRUE(members_.AdmitController(a, {{"epoch", 3}}));
  const MemberId b = Connect(&later, Member::Role::kUnknown);
  EXPECT_TRUE(members_.AdmitController(b, {{"epoch", 4}}));
  EXPECT_TRUE(members_.Find(a)->superseded);
  ASSERT_EQ(earlier.messages.size(), 1u);
  EXPECT_EQ(earlier.messages[0].first, "superseded");
  EXPECT_EQ(earlier.closed, "another server leads");
  EXPECT_FALSE(members_.Find(b)->superseded);
  EXPECT_FALSE(members_.Find(task)->superseded);
  EXPECT_EQ(later.closed + launcher.closed, "");
}

TEST_F(MemberTableTest, TheControllerOfAnEarlierLeaderIsRefused) {
  FakeLog leader, frozen;
  const MemberId a = Connect(&leader, Member::Role::kController);
  EXPECT_TRUE(members_.AdmitController(a, {{"epoch", 4}}));
  const MemberId b = Connect(&frozen, Member::Role::kUnknown);
  EXPECT_FALSE(members_.AdmitController(b, {{"epoch", 3}}));
  EXPECT_EQ(frozen.closed, "another server leads");
  EXPECT_EQ(leader.closed, "");
}

TEST_F(MemberTableTest, SharedMessagesReachOnlyTheChosen) {
  FakeLog one, two;
  const MemberId id = Connect(&one, Member::Role::kLauncher);
  Connect(&two, Member::Role::kObserver);
  members_.SendToAll(std::make_shared<const std::string>("x"), false,
                     [&](MemberId other, const Member&) { return other == id; });
  EXPECT_EQ(one.shared, 1);
  EXPECT_EQ(two.shared, 0);
  members_.CloseAll("ended");
  EXPECT_EQ(one.closed + two.closed, "endedended");
}

}  // namespace
}  // namespace shoal::rendezvous
