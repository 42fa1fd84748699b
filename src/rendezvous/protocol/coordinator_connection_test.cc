#include "rendezvous/protocol/coordinator_connection.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/clock.h"

namespace shoal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A connection to a coordinator that has no address yet.
struct Dialled {
  explicit Dialled(net::Loop* loop, std::function<bool()> lives) {
    CoordinatorConnectionOptions options;
    options.token = "token";
    options.give_up_after = milliseconds(20);
    options.lives = std::move(lives);
    options.find = []() -> Result<CoordinatorAddress> { return Unavailable("not yet"); };
    CoordinatorConnectionCallbacks callbacks;
    callbacks.hello = [] { return json::object(); };
    callbacks.on_given_up = [this](const Status& why) { given_up = why; };
    connection = CoordinatorConnection::Start(loop, std::move(options), std::move(callbacks));
  }
  std::optional<Status> given_up;
  std::unique_ptr<CoordinatorConnection> connection;
};

TEST(CoordinatorConnection, WaitsForACoordinatorWhoseProcessLives) {
  net::Loop loop;
  int asked = 0;
  Dialled dialled(&loop, [&asked] { return ++asked < 5; });
  ASSERT_TRUE(loop.RunUntil([&] { return dialled.given_up.has_value(); }, seconds(30)));
  EXPECT_EQ(asked, 5) << "while it lives it is dialled again, however long it was away";
  EXPECT_EQ(dialled.given_up->message(), "not yet");
}

TEST(CoordinatorConnection, GivesUpACoordinatorThatLivesAndNeverAnswers) {
  net::Loop loop;
  const TimePoint begin = RealClock::Get()->Now();
  Dialled dialled(&loop, [] { return true; });
  ASSERT_TRUE(loop.RunUntil([&] { return dialled.given_up.has_value(); }, seconds(30)));
  EXPECT_GE(RealClock::Get()->Now() - begin, 20 * milliseconds(20));
}

}  // namespace
}  // namespace shoal::rendezvous
