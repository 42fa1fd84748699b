#include "api/webhooks/webhook.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "api/webhooks/delivery.h"
#include "api/webhooks/dispatcher.h"
#include "api/webhooks/message.h"
#include "base/file.h"
#include "controller/store/sql/test_temp_store.h"

namespace shoal::api {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// The example of the specification (standardwebhooks.com, "Verifying webhook authenticity").
TEST(WebhookMessage, SignatureIsThatOfStandardWebhooks) {
  EXPECT_EQ(SignMessage("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek",
                        1614265330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

controller::StoredEvent Stored(const std::string& type, json::object body) {
  controller::StoredEvent stored;
  stored.position = 17;
  stored.job = "mnist-0a1b2c";
  stored.team = "red";
  stored.event.type = type;
  stored.event.body = std::move(body);
  return stored;
}

TEST(WebhookMessage, ChangesOfStatesMakeMessages) {
  const auto failed =
      ChangeOf(Stored("ended", {{"state", "failed"}, {"reason", "worker-0 failed"}}), "s");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->event, "failed");
  EXPECT_EQ(failed->reason, "worker-0 failed");
  EXPECT_EQ(failed->id, "evt_s_17");
  EXPECT_EQ(ChangeOf(Stored("pending", {}), "s")->event, "queued");
  EXPECT_FALSE(ChangeOf(Stored("task", {}), "s"));
  EXPECT_FALSE(ChangeOf(Stored("note", {{"text", "x"}}), "s"));
  EXPECT_FALSE(ChangeOf(Stored("ended", {{"unreadable", "why"}}), "s"));
}

TEST(WebhookMessage, SlackGetsItsCharactersEscaped) {
  JobChange change;
  change.event = "failed";
  change.job = "mnist-0a1b2c";
  change.name = "a<b>&c";
  change.reason = "exit <1>";
  change.team = "red";
  const auto body = ParseJsonObject(RenderMessage(WebhookFormat::kSlack, change));
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(GetStringOr(*body, "text", ""),
            "*a&lt;b&gt;&amp;c* failed: exit &lt;1&gt;\n`mnist-0a1b2c`, team red");
}

TEST(WebhookUrl, PartsAndRefusals) {
  const auto url = ParseWebhookUrl("https://hooks.example.org:8443/a/b?key=c");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->base, "https://hooks.example.org:8443");
  EXPECT_EQ(url->target, "/a/b?key=c");
  EXPECT_EQ(ParseWebhookUrl("http://h")->target, "/");
  EXPECT_EQ(ParseWebhookUrl("http://h?x=/y")->target, "/?x=/y");
  EXPECT_EQ(ParseWebhookUrl("http://h?x=/y")->base, "http://h");
  for (const char* text : {"", "ftp://h/x", "h/x", "http://", "http://user:password@h/x",
                           "http://h/a b", "http://h/#x", "http://h/\r\nX: y"})
    EXPECT_FALSE(ParseWebhookUrl(text).ok()) << text;
  EXPECT_EQ(PlaceOf("https://hooks.slack.com/services/T/B/X"), "https://hooks.slack.com/…");
}

Result<net::HttpReply> Reply(int status, std::string retry_after = "") {
  net::HttpReply reply;
  reply.status = status;
  if (!retry_after.empty()) reply.headers.emplace_back("retry-after", std::move(retry_after));
  return reply;
}

TEST(WebhookDelivery, OutcomesOfReplies) {
  EXPECT_EQ(OutcomeOf(Reply(204)).result, DeliveryResult::kDelivered);
  EXPECT_EQ(OutcomeOf(Reply(302)).result, DeliveryResult::kFailed);
  EXPECT_EQ(OutcomeOf(Reply(503, "7")).result, DeliveryResult::kFailed);
  EXPECT_EQ(OutcomeOf(Reply(503, "7")).retry_after, seconds(7));
  EXPECT_EQ(OutcomeOf(Reply(429, "999999999")).retry_after, minutes(5));
  EXPECT_EQ(OutcomeOf(Reply(429, "-1")).retry_after, Duration());
  EXPECT_EQ(OutcomeOf(Reply(404)).result, DeliveryResult::kRejected);
  EXPECT_EQ(OutcomeOf(Reply(410)).result, DeliveryResult::kGone);
  EXPECT_EQ(OutcomeOf(Unavailable("no server listens there")).result, DeliveryResult::kFailed);
}

TEST(WebhookDelivery, DelaysGrowWithJitterToFiveMinutes) {
  EXPECT_EQ(RetryDelay(1, 0), std::chrono::milliseconds(500));
  EXPECT_LE(RetryDelay(1, ~uint64_t{0}), seconds(1));
  EXPECT_EQ(RetryDelay(4, 0), seconds(4));
  EXPECT_EQ(RetryDelay(1000, 0), seconds(150));
  EXPECT_LE(RetryDelay(1000, ~uint64_t{0}), minutes(5));
}

class QueueTest : public testing::Test {
 protected:
  void Push(int64_t position, WallTime time) {
    JobChange change;
    change.position = position;
    change.time = time;
    queue_.Push(change);
    queue_.SetScanned(position);
  }
  TimePoint now() const { return clock_.Now(); }
  WallTime wall() const { return clock_.Wall(); }
  void Apply(DeliveryResult result) { queue_.Apply({result, "no", {}}, now(), wall(), 0); }

  FakeClock clock_;
  DeliveryQueue queue_{WebhookProgress{}};
};

TEST_F(QueueTest, PositionFollowsAcceptedMessages) {
  Push(3, wall());
  Push(5, wall());
  queue_.SetScanned(9);
  EXPECT_EQ(queue_.progress().position, 0);
  ASSERT_EQ(queue_.Next(now(), wall())->position, 3);
  Apply(DeliveryResult::kDelivered);
  EXPECT_EQ(queue_.progress().position, 3);
  ASSERT_EQ(queue_.Next(now(), wall())->position, 5);
  Apply(DeliveryResult::kDelivered);
  EXPECT_EQ(queue_.progress().position, 9);  // nothing waits: all that was seen is told
  EXPECT_EQ(queue_.Next(now(), wall()), nullptr);
}

TEST_F(QueueTest, FailuresAreRetriedLaterUntilTheMessageExpires) {
  Push(3, wall());
  ASSERT_NE(queue_.Next(now(), wall()), nullptr);
  Apply(DeliveryResult::kFailed);
  EXPECT_TRUE(queue_.failing());
  EXPECT_EQ(queue_.Next(now(), wall()), nullptr);
  clock_.Advance(seconds(1));
  ASSERT_NE(queue_.Next(now(), wall()), nullptr);
  clock_.Advance(hours(24));
  EXPECT_EQ(queue_.Next(now(), wall()), nullptr);
  EXPECT_EQ(queue_.progress().dropped, 1);
  EXPECT_EQ(queue_.progress().position, 3);
}

TEST_F(QueueTest, ARejectedMessageIsGivenUpAndTheNextOneSent) {
  Push(3, wall());
  Push(4, wall());
  for (int i = 0; i < DeliveryQueue::kRejections; ++i) {
    ASSERT_EQ(queue_.Next(now(), wall())->position, 3);
    Apply(DeliveryResult::kRejected);
    clock_.Advance(minutes(5));
  }
  EXPECT_EQ(queue_.progress().dropped, 1);
  EXPECT_EQ(queue_.Next(now(), wall())->position, 4);
}

TEST_F(QueueTest, AReceiverThatIsGoneIsLeftAloneUntilItIsSetAgain) {
  Push(3, wall());
  Apply(DeliveryResult::kGone);
  clock_.Advance(hours(1));
  EXPECT_EQ(queue_.Next(now(), wall()), nullptr);
  queue_.Reset();
  EXPECT_NE(queue_.Next(now(), wall()), nullptr);
}

// A real store, and a sender that records or blocks.
class DispatcherTest : public controller::TempStoreTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(TempStoreTest::SetUp());
    controller::SealingKeySource key;
    key.file = directory_->path() / "key";
    vault_ = std::make_unique<controller::SecretVault>(&store_->records(), RealClock::Get(), key);
    webhooks_ = std::make_unique<Webhooks>(&store_->records(), vault_.get(), RealClock::Get());
  }

  void TearDown() override { dispatcher_.reset(); }

  void StartDispatcher() {
    WebhookDispatcherOptions options;
    options.store = store_.get();
    options.webhooks = webhooks_.get();
    options.clock = RealClock::Get();
    options.random = [] { return 0; };
    options.send = [this](const Webhook& webhook, const JobChange& change) {
      return Send(webhook, change);
    };
    auto made = WebhookDispatcher::Start(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    dispatcher_ = std::move(*made);
  }

  DeliveryOutcome Send(const Webhook& webhook, const JobChange& change) {
    std::unique_lock lock(mu_);
    if (blocked_.contains(webhook.name)) changed_.wait(lock, [this] { return released_; });
    got_.push_back(webhook.name + " " + change.job + " " + change.event);
    changed_.notify_all();
    return {DeliveryResult::kDelivered, "", {}};
  }

  void SetHook(const std::string& team, const std::string& name) {
    Webhook webhook;
    webhook.team = team;
    webhook.name = name;
    webhook.url = "http://receiver.invalid/";
    const auto stored = webhooks_->Set(webhook, *store_->LastPosition());
    ASSERT_TRUE(stored.ok()) << stored.status().ToString();
  }

  void Submit(const std::string& id, const std::string& team) {
    controller::NewJob job;
    job.id = id;
    job.name = id;
    job.engine = "local";
    job.team = team;
    job.time = RealClock::Get()->Wall();
    const Status done = store_->Submit(job);
    ASSERT_TRUE(done.ok()) << done.ToString();
  }

  bool Await(const std::string& message) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, seconds(30),
                             [&] { return std::ranges::find(got_, message) != got_.end(); });
  }

  std::unique_ptr<controller::SecretVault> vault_;
  std::unique_ptr<Webhooks> webhooks_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::set<std::string> blocked_;
  bool released_ = false;
  std::vector<std::string> got_;
  std::unique_ptr<WebhookDispatcher> dispatcher_;
};

TEST_F(DispatcherTest, EachTeamAndTheServerGetTheirJobs) {
  Submit("before", "red");
  SetHook("red", "of-red");
  SetHook("", "of-all");
  StartDispatcher();
  Submit("one", "red");
  Submit("two", "blue");
  EXPECT_TRUE(Await("of-red one submitted"));
  EXPECT_TRUE(Await("of-all one submitted"));
  EXPECT_TRUE(Await("of-all two submitted"));
  Submit("three", "red");
  EXPECT_TRUE(Await("of-red three submitted"));
  const std::lock_guard lock(mu_);
  EXPECT_EQ(std::ranges::count_if(got_, [](const auto& m) { return m.starts_with("of-red"); }), 2);
}

TEST_F(DispatcherTest, ReceiversThatHangHoldUpNoOther) {
  for (int i = 0; i < 7; ++i) {
    blocked_.insert("hangs-" + std::to_string(i));
    SetHook("red", "hangs-" + std::to_string(i));
  }
  SetHook("red", "works");
  StartDispatcher();
  Submit("one", "red");
  EXPECT_TRUE(Await("works one submitted"));
  Submit("two", "red");
  EXPECT_TRUE(Await("works two submitted"));
  const std::lock_guard lock(mu_);
  released_ = true;
  changed_.notify_all();
}

TEST_F(DispatcherTest, TheNextServerGoesOnWhereTheLastOneEnded) {
  SetHook("red", "hook");
  StartDispatcher();
  Submit("one", "red");
  EXPECT_TRUE(Await("hook one submitted"));
  dispatcher_.reset();
  Submit("two", "red");
  got_.clear();
  StartDispatcher();
  EXPECT_TRUE(Await("hook two submitted"));
  const std::lock_guard lock(mu_);
  EXPECT_LE(got_.size(), 2U);  // at least once: the first may come again
}

TEST_F(DispatcherTest, SecretsAndUrlsAreSealed) {
  Webhook webhook;
  webhook.team = "red";
  webhook.name = "hook";
  webhook.url = "https://hooks.example.org/canary-5e1f";
  const auto stored = webhooks_->Set(webhook, 0);
  ASSERT_TRUE(stored.ok());
  EXPECT_TRUE(CheckWebhookSecret(stored->secret).ok());
  const auto record = store_->records().Get("webhook", "red/hook");
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(ToText(record->body).find("canary"), std::string::npos);
  const auto all = webhooks_->ReadAll();
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ((*all)[0].url, webhook.url);
  EXPECT_EQ((*all)[0].secret, stored->secret);
  EXPECT_TRUE(vault_->List("red")->empty());
  webhook.url.clear();  // stays as it was
  webhook.events = {"failed"};
  EXPECT_EQ(webhooks_->Set(webhook, 0)->secret, stored->secret);
  webhook.events = {"exploded"};
  EXPECT_NE(webhooks_->Set(webhook, 0).status().message().find("exploded"), std::string::npos);
  ASSERT_TRUE(webhooks_->Remove("red", "hook").ok());
  EXPECT_EQ(webhooks_->Remove("red", "hook").code(), Code::kNotFound);
  EXPECT_TRUE(webhooks_->ReadAll()->empty());
}

TEST_F(DispatcherTest, ATeamHasABoundedNumber) {
  for (size_t i = 0; i < Webhooks::kMaxOfTeam; ++i) SetHook("red", "hook-" + std::to_string(i));
  Webhook webhook;
  webhook.team = "red";
  webhook.name = "one-more";
  webhook.url = "https://hooks.example.org/";
  EXPECT_EQ(webhooks_->Set(webhook, 0).status().code(), Code::kResourceExhausted);
  webhook.name = "hook-0";
  EXPECT_TRUE(webhooks_->Set(webhook, 0).ok());
}

}  // namespace
}  // namespace shoal::api
