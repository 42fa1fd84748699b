#include "rendezvous/coordinator/action_performer.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/file.h"
#include "rendezvous/coordinator/fake_connection.h"
#include "rendezvous/lifecycle/core_driver.h"

namespace shoal::rendezvous {
namespace {

class ActionPerformerTest : public testing::Test {
 protected:
  static job::Job Workers(const std::string& reference) {
    job::Job job = Make(2, 0);
    job.roles[0].command = {"true"};
    if (!reference.empty()) job.roles[0].env["PEER"] = reference;
    return job;
  }
  // Both launchers are connected, as members 1 and 2.
  void Open(const std::string& reference = "") {
    driver_.emplace(Workers(reference));
    for (FakeLog& log : logs_)
      members_.Add(members_.NextId(), std::make_unique<FakeConnection>(&log));
    driver_->JoinAll();
    performer_.emplace(
        &loop_, &driver_->core, &members_, JobLocation{"job-1", dir_.path().string(), "", false},
        ActionPerformerCallbacks{[this](const std::string& text) { notes_.push_back(text); },
                                 [this](const LauncherRefused& one) { refused_.push_back(one); },
                                 [this] { ++exits_; }});
    performer_->SetLogDirectory("identity");
  }
  static Action Of(Action::Kind kind, MemberId member, int task) {
    Action action;
    action.kind = kind;
    action.member = member;
    action.task = task;
    return action;
  }

  TempDir dir_{std::move(*TempDir::Create())};
  net::Loop loop_;
  FakeLog logs_[2];
  MemberTable members_;
  std::optional<CoreDriver> driver_;
  std::optional<ActionPerformer> performer_;
  std::vector<std::string> notes_;
  std::vector<LauncherRefused> refused_;
  int exits_ = 0;
};

TEST_F(ActionPerformerTest, AStartIsPrecededByTheDescription) {
  Open();
  performer_->Perform(Of(Kind::kStart, 1, 0));
  EXPECT_EQ(logs_[0].shared, 1);
  ASSERT_EQ(logs_[0].messages.size(), 1u);
  EXPECT_EQ(logs_[0].messages[0].first, "start");
  EXPECT_EQ(logs_[0].messages[0].second.at("logs_at"), "identity");
  EXPECT_TRUE(logs_[1].messages.empty());
}

TEST_F(ActionPerformerTest, ATaskWhoseEnvironmentCannotBeMadeIsRefusedAfterwards) {
  Open("{{shoal.addresses.nobody}}");
  performer_->Perform(Of(Kind::kStart, 2, 1));
  EXPECT_TRUE(refused_.empty());
  EXPECT_TRUE(logs_[1].messages.empty());
  ASSERT_TRUE(loop_.RunUntil([this] { return !refused_.empty(); }, std::chrono::seconds(10)));
  EXPECT_EQ(refused_[0].role, "worker");
  EXPECT_EQ(refused_[0].index, 1);
}

TEST_F(ActionPerformerTest, ARefusalDoesNotOutliveIt) {
  Open("{{shoal.addresses.nobody}}");
  performer_->Perform(Of(Kind::kStart, 1, 0));
  performer_.reset();
  bool last = false;
  loop_.Post([&] { last = true; });
  ASSERT_TRUE(loop_.RunUntil([&] { return last; }, std::chrono::seconds(10)));
  EXPECT_TRUE(refused_.empty());
}

TEST_F(ActionPerformerTest, ADescriptionForAllReachesOnlyLaunchersOfTasks) {
  Open();
  FakeLog controller;
  members_.Add(members_.NextId(), std::make_unique<FakeConnection>(&controller));
  performer_->Perform(Of(Kind::kDescribe, 0, -1));
  EXPECT_EQ(logs_[0].shared, 1);
  EXPECT_EQ(logs_[1].shared, 1);
  EXPECT_EQ(controller.shared, 0);
  performer_->Perform(Of(Kind::kDescribe, 2, 1));
  EXPECT_EQ(logs_[0].shared, 1);
  EXPECT_EQ(logs_[1].shared, 2);
}

TEST_F(ActionPerformerTest, ActionsForAConnectionThatHasGoneDoNothing) {
  Open();
  members_.Remove(1);
  for (const Kind kind : {Kind::kStart, Kind::kDescribe, Kind::kKill, Kind::kRelease})
    performer_->Perform(Of(kind, 1, 0));
  EXPECT_TRUE(logs_[0].messages.empty());
  EXPECT_EQ(logs_[0].shared, 0);
}

TEST_F(ActionPerformerTest, NotesAndTheExitAreGivenOn) {
  Open();
  Action note = Of(Kind::kNote, 0, -1);
  note.text = "a sentence";
  performer_->Perform(note);
  performer_->Perform(Of(Kind::kExit, 0, -1));
  EXPECT_EQ(notes_, std::vector<std::string>{"a sentence"});
  EXPECT_EQ(exits_, 1);
}

}  // namespace
}  // namespace shoal::rendezvous
