#include "learn/sparse/exchange/ticket_lock.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ps/server/server.h"
#include "ps/testing/test_cluster.h"

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
      turns_.push_back(std::make_unique<TicketLock>(clients_.back().get(), &clock_));
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

  bool TryAcquire(size_t worker) { return turns_[worker]->TryAcquire(milliseconds(4)).value(); }
  // Returns once the server has heard of it.
  void End(size_t worker) {
    EXPECT_TRUE(turns_[worker]->Release().ok());
    EXPECT_TRUE(clients_[worker]->Flush().ok());
  }

  void ExpectOneAtATime() {
    EXPECT_TRUE(TryAcquire(0));
    EXPECT_FALSE(TryAcquire(1));
    EXPECT_FALSE(TryAcquire(2));
    End(0);
    EXPECT_FALSE(TryAcquire(2));
    EXPECT_TRUE(TryAcquire(1));
    End(1);
    EXPECT_TRUE(TryAcquire(2));
    End(2);
  }

  static constexpr int kWorkers = 3;
  FakeClock clock_;
  std::shared_ptr<ps::InProcessHub> hub_;
  ps::FixedMembers members_;
  std::unique_ptr<ps::Server> server_;
  std::vector<std::unique_ptr<ps::Client>> clients_;
  std::vector<std::unique_ptr<TicketLock>> turns_;
};

TEST_F(SparseTurn, OneAtATimeInTheOrderInWhichTheyAsked) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(TryAcquire(0));
    EXPECT_FALSE(TryAcquire(2));
    EXPECT_FALSE(TryAcquire(1));
    EXPECT_TRUE(turns_[1]->has_ticket());
    End(0);
    EXPECT_FALSE(turns_[0]->has_ticket());
    EXPECT_FALSE(TryAcquire(1));
    EXPECT_FALSE(TryAcquire(0));
    EXPECT_TRUE(TryAcquire(2));
    EXPECT_TRUE(TryAcquire(2));
    End(2);
    EXPECT_TRUE(TryAcquire(1));
    End(1);
    EXPECT_TRUE(TryAcquire(0));
    End(0);
  }
}

TEST_F(SparseTurn, EndingWithoutATurnGivesNobodyTheTurn) {
  EXPECT_TRUE(TryAcquire(0));
  EXPECT_FALSE(TryAcquire(1));
  End(1);
  EXPECT_FALSE(TryAcquire(2));
  End(0);
  EXPECT_TRUE(TryAcquire(1));
}

TEST_F(SparseTurn, AWorkerFartherBehindLooksLater) {
  EXPECT_TRUE(TryAcquire(0));
  EXPECT_FALSE(TryAcquire(1));
  EXPECT_FALSE(TryAcquire(2));
  EXPECT_GT(turns_[2]->next_attempt(), turns_[1]->next_attempt());
}

TEST_F(SparseTurn, LooksAgainWithinAnExchange) {
  EXPECT_TRUE(TryAcquire(0));
  EXPECT_FALSE(TryAcquire(1));
  EXPECT_GT(turns_[1]->next_attempt(), clock_.Now());
  EXPECT_LE(turns_[1]->next_attempt(), clock_.Now() + milliseconds(4));
}

TEST_F(SparseTurn, AWorkerThatIsLostInItsTurnIsPassedOver) {
  EXPECT_TRUE(TryAcquire(0));
  EXPECT_FALSE(TryAcquire(1));
  EXPECT_FALSE(TryAcquire(2));
  clock_.Advance(milliseconds(900));
  EXPECT_FALSE(TryAcquire(1));
  clock_.Advance(milliseconds(200));
  EXPECT_TRUE(TryAcquire(1));
  EXPECT_FALSE(TryAcquire(2));
  // The lost one was only slow: with its end two have the turn, until all have ended.
  End(0);
  EXPECT_TRUE(TryAcquire(2));
  End(1);
  End(2);
  ExpectOneAtATime();
}

TEST_F(SparseTurn, LongExchangesAreWaitedFor) {
  EXPECT_TRUE(turns_[0]->TryAcquire(seconds(2)).value());
  EXPECT_FALSE(turns_[1]->TryAcquire(seconds(2)).value());
  clock_.Advance(seconds(15));
  EXPECT_FALSE(turns_[1]->TryAcquire(seconds(2)).value());
  clock_.Advance(seconds(2));
  EXPECT_TRUE(turns_[1]->TryAcquire(seconds(2)).value());
}

TEST_F(SparseTurn, AServerThatForgotTheTicketsGivesNewOnes) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(TryAcquire(0));
    End(0);
  }
  EXPECT_TRUE(TryAcquire(0));
  EXPECT_FALSE(TryAcquire(1));
  StartServer();
  EXPECT_TRUE(TryAcquire(1));
  End(0);  // of a ticket that the server has forgotten
  EXPECT_TRUE(TryAcquire(2));
  End(1);
  End(2);
  ExpectOneAtATime();
}

}  // namespace
}  // namespace shoal::learn::sparse
