#include "api/people/people.h"

#include <gtest/gtest.h>

#include "api/people/throttle.h"
#include "base/file.h"
#include "controller/store/sql/test_temp_store.h"

namespace shoal::api {
namespace {

User Named(const std::string& name, bool administrator = false) {
  User user;
  user.name = name;
  user.administrator = administrator;
  return user;
}

class PeopleTest : public controller::TempStoreTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(TempStoreTest::SetUp());
    people_ = std::make_unique<People>(&store_->records(), &clock_);
  }

  std::string Admin() {
    const auto made = people_->MakeFirstAdministrator();
    return made.ok() && *made ? **made : "";
  }

  FakeClock clock_;
  std::unique_ptr<People> people_;
};

TEST_F(PeopleTest, FirstAdministratorIsMadeOnce) {
  const std::string token = Admin();
  const auto principal = people_->Authenticate(token);
  ASSERT_TRUE(principal.ok()) << principal.status().ToString();
  EXPECT_EQ(principal->user, kFirstUser);
  EXPECT_TRUE(principal->administrator);
  EXPECT_EQ(principal->scopes, ScopeSet::All());
  const auto again = people_->MakeFirstAdministrator();
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->has_value());
}

TEST_F(PeopleTest, StoresOnlyTheDigestOfATokenAndItsLastUse) {
  const std::string token = Admin();
  ASSERT_TRUE(people_->Authenticate(token).ok());
  const auto page = people_->ListTokens(kFirstUser, "", 10);
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->items.size(), 1U);
  EXPECT_TRUE(page->items[0].last_used.has_value());
  const std::string secret = token.substr(token.rfind('_') + 1);
  EXPECT_EQ(ToText(ToJson(page->items[0])).find(secret), std::string::npos);
}

TEST_F(PeopleTest, RefusesWrongExpiredAndRevokedTokensAlike) {
  Admin();
  ScopeSet scopes;
  scopes.Add(Scope::kJobsRead);
  const auto made = people_->CreateToken({kFirstUser, "short", scopes, std::chrono::seconds(10)});
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(people_->Authenticate(made->text).ok());
  std::string wrong = made->text;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const Status unknown =
      people_->Authenticate("shoal_000000000000_" + std::string(64, '0')).status();
  EXPECT_EQ(unknown.code(), Code::kUnauthenticated);
  EXPECT_EQ(people_->Authenticate(wrong).status().message(), unknown.message());
  EXPECT_EQ(people_->Authenticate("").status().message(), unknown.message());
  clock_.Advance(std::chrono::seconds(11));
  EXPECT_EQ(people_->Authenticate(made->text).status().message(), unknown.message());
  const auto other = people_->CreateToken({kFirstUser, "other", scopes, std::nullopt});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(people_->RevokeToken(other->token.id).ok());
  EXPECT_EQ(people_->Authenticate(other->text).status().message(), unknown.message());
}

TEST_F(PeopleTest, RolesOfTeams) {
  Admin();
  ASSERT_TRUE(people_->CreateUser(Named("ada")).ok());
  ASSERT_TRUE(people_->CreateTeam("red").ok());
  ASSERT_TRUE(people_->SetMembership("red", "ada", Role::kMember).ok());
  const auto token = people_->CreateToken({"ada", "", ScopeSet::All(), std::nullopt});
  ASSERT_TRUE(token.ok());
  auto principal = people_->Authenticate(token->text);
  ASSERT_TRUE(principal.ok());
  EXPECT_EQ(principal->RoleIn("red"), Role::kMember);
  EXPECT_EQ(principal->RoleIn("blue"), Role::kNone);
  EXPECT_TRUE(people_->IsValid(*principal));
  EXPECT_EQ(people_->RemoveTeam("red").code(), Code::kFailedPrecondition);
  ASSERT_TRUE(people_->SetMembership("red", "ada", Role::kNone).ok());
  EXPECT_FALSE(people_->IsValid(*principal));
  EXPECT_TRUE(people_->RemoveTeam("red").ok());
  ASSERT_TRUE(people_->RemoveUser("ada").ok());
  EXPECT_FALSE(people_->Authenticate(token->text).ok());
}

TEST_F(PeopleTest, TheLastAdministratorStays) {
  Admin();
  UserChange change;
  change.disabled = true;
  EXPECT_EQ(people_->ChangeUser(kFirstUser, change).status().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(people_->CreateUser(Named("ada", true)).ok());
  EXPECT_TRUE(people_->ChangeUser(kFirstUser, change).ok());
  EXPECT_EQ(people_->RemoveUser("ada").code(), Code::kFailedPrecondition);
}

TEST_F(PeopleTest, ChecksNames) {
  for (const char* name : {"", "Ada", "a b", "../x", "-a", "a\n"})
    EXPECT_EQ(people_->CreateUser(Named(name)).status().code(), Code::kInvalidArgument) << name;
  EXPECT_FALSE(people_->CreateTeam(std::string(65, 'a')).ok());
  ASSERT_TRUE(people_->CreateTeam("a.b-c_9").ok());
  EXPECT_EQ(people_->CreateTeam("a.b-c_9").status().code(), Code::kAlreadyExists);
}

TEST(TokenTextTest, ReadsItsOwnFormOnly) {
  const TokenText made = NewTokenText();
  const auto parsed = ParseTokenText(TextOf(made));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->id, made.id);
  EXPECT_EQ(parsed->secret, made.secret);
  for (const std::string& text : {std::string(), TextOf(made) + "0", TextOf(made).substr(1),
                                  "shoal_" + made.id + "-" + made.secret})
    EXPECT_FALSE(ParseTokenText(text).has_value()) << text;
}

TEST(ThrottleTest, LaterFailuresWaitLongerAndAreForgotten) {
  FakeClock clock;
  Throttle throttle(&clock);
  for (int i = 0; i < Throttle::kFreeFailures; ++i)
    EXPECT_EQ(throttle.CountFailure("10.0.0.1"), Duration(0));
  const Duration first = throttle.CountFailure("10.0.0.1");
  EXPECT_GT(first, Duration(0));
  EXPECT_GT(throttle.CountFailure("10.0.0.1"), first);
  for (int i = 0; i < 100; ++i) EXPECT_LE(throttle.CountFailure("10.0.0.1"), Throttle::kMaxDelay);
  EXPECT_EQ(throttle.CountFailure("10.0.0.2"), Duration(0));
  clock.Advance(Throttle::kMemory + std::chrono::seconds(1));
  EXPECT_EQ(throttle.CountFailure("10.0.0.1"), Duration(0));
}

TEST(ThrottleTest, RemembersABoundedNumberOfPeers) {
  FakeClock clock;
  Throttle throttle(&clock);
  for (size_t i = 0; i < Throttle::kMaxPeers + 100; ++i)
    (void)throttle.CountFailure("peer " + std::to_string(i));
  EXPECT_EQ(throttle.peers(), Throttle::kMaxPeers);
}

}  // namespace
}  // namespace shoal::api
