#include "learn/sparse/turn.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ps/server.h"
#include "ps/test_cluster.h"

namespace shoal::learn::sparse {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SparseTurn : public testing::Test {
 protected:
  SparseTurn() {
    hub_ = std::make_shared<ps::InProcessHub>();
    StartServer();
    for (int i = 0; i < kWorkers; ++i) {
      ps::ClientOptions options;
      options.index = i;
      options.token = "token";
      options.hub = hub_;
      clients_.push_back(ps::Client::Connect(std::move(options), &members_).value());
      turns_.push_back(std::make_unique<Turn>(clients_.back().get(), &clock_));
      EXPECT_TRUE(turns_.back()->Connect().ok());
    }
  }

  // Empty.
  void StartServer() {
    server_.reset();
    ps::ServerOptions options;
    options.servers = 1;
    options.workers = kWorkers;
    options.token = "token";
    options.listen_host.clear();
    options.hub = hub_;
    options.inproc_name = "server";
    server_ = ps::Server::Start(std::move(options)).value();
    members_.Set(0, server_->inproc_address());
  }

  bool Try(size_t worker) { return turns_[worker]->Try(milliseconds(4)).value(); }
  // Returns once the server has heard of it.
  void End(size_t worker) {
    EXPECT_TRUE(turns_[worker]->End().ok());
    EXPECT_TRUE(clients_[worker]->Flush().ok());
  }

  void ExpectOneAtATime() {
    EXPECT_TRUE(Try(0));
    EXPECT_FALSE(Try(1));
    EXPECT_FALSE(Try(2));
    End(0);
    EXPECT_FALSE(Try(2));
    EXPECT_TRUE(Try(1));
    End(1);
    EXPECT_TRUE(Try(2));
    End(2);
  }

  static constexpr int kWorkers = 3;
  FakeClock clock_;
  std::shared_ptr<ps::InProcessHub> hub_;
  ps::FixedMembers members_;
  std::unique_ptr<ps::Server> server_;
  std::vector<std::unique_ptr<ps::Client>> clients_;
  std::vector<std::unique_ptr<Turn>> turns_;
};

TEST_F(SparseTurn, OneAtATimeInTheOrderInWhichTheyAsked) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(Try(0));
    EXPECT_FALSE(Try(2));
    EXPECT_FALSE(Try(1));
    EXPECT_TRUE(turns_[1]->waits());
    End(0);
    EXPECT_FALSE(turns_[0]->waits());
    EXPECT_FALSE(Try(1));
    EXPECT_FALSE(Try(0));
    EXPECT_TRUE(Try(2));
    EXPECT_TRUE(Try(2));
    End(2);
    EXPECT_TRUE(Try(1));
    End(1);
    EXPECT_TRUE(Try(0));
    End(0);
  }
}

TEST_F(SparseTurn, EndingWithoutATurnGivesNobodyTheTurn) {
  EXPECT_TRUE(Try(0));
  EXPECT_FALSE(Try(1));
  End(1);
  EXPECT_FALSE(Try(2));
  End(0);
  EXPECT_TRUE(Try(1));
}

TEST_F(SparseTurn, LooksAgainWithinAnExchange) {
  EXPECT_TRUE(Try(0));
  EXPECT_FALSE(Try(1));
  EXPECT_GT(turns_[1]->next_look(), clock_.Now());
  EXPECT_LE(turns_[1]->next_look(), clock_.Now() + milliseconds(4));
}

TEST_F(SparseTurn, AWorkerThatIsLostInItsTurnIsPassedOver) {
  EXPECT_TRUE(Try(0));
  EXPECT_FALSE(Try(1));
  EXPECT_FALSE(Try(2));
  clock_.Advance(milliseconds(900));
  EXPECT_FALSE(Try(1));
  clock_.Advance(milliseconds(200));
  EXPECT_TRUE(Try(1));
  EXPECT_FALSE(Try(2));
  // The lost one was only slow: with its end two have the turn, until all have ended.
  End(0);
  EXPECT_TRUE(Try(2));
  End(1);
  End(2);
  ExpectOneAtATime();
}

TEST_F(SparseTurn, LongExchangesAreWaitedFor) {
  EXPECT_TRUE(turns_[0]->Try(seconds(2)).value());
  EXPECT_FALSE(turns_[1]->Try(seconds(2)).value());
  clock_.Advance(seconds(15));
  EXPECT_FALSE(turns_[1]->Try(seconds(2)).value());
  clock_.Advance(seconds(2));
  EXPECT_TRUE(turns_[1]->Try(seconds(2)).value());
}

TEST_F(SparseTurn, AServerThatForgotTheTicketsGivesNewOnes) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Try(0));
    End(0);
  }
  EXPECT_TRUE(Try(0));
  EXPECT_FALSE(Try(1));
  StartServer();
  EXPECT_TRUE(Try(1));
  End(0);  // of a ticket that the server has forgotten
  EXPECT_TRUE(Try(2));
  End(1);
  End(2);
  ExpectOneAtATime();
}

}  // namespace
}  // namespace shoal::learn::sparse
