// The contract of every Store implementation: leases, fences, and what survives the death of a
// writer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "controller/store/leader.h"
#include "controller/store/test_child.h"
#include "controller/store/test_store_kinds.h"

namespace shoal::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class StoreLeases : public StoreTest {
 protected:
  FakeClock clock_;
  Status Note(Store* store, const std::string& id, const Fence& fence) {
    const Event note = NoteEvent(At(1), "n");
    return store->AppendChecked(id, {&note, 1}, Durability::kSynced, {.fence = fence});
  }
  // Takes the lease as soon as it is free.
  Lease TakeOver(Store* store, Duration at_most) {
    const TimePoint end = RealClock::Get()->Now() + at_most;
    while (true) {
      Result<Lease> lease = store->AcquireLease(kLeaderLease, "second", seconds(5));
      EXPECT_TRUE(lease.ok()) << lease.status().ToString();
      if (!lease.ok() || lease->acquired || RealClock::Get()->Now() > end)
        return lease.value_or({});
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
};

TEST_P(StoreLeases, OneHolderAtATime) {
  store_ = Open(&clock_);
  const std::unique_ptr<Store> other = Open(&clock_);
  const Lease first = *store_->AcquireLease("leader", "one", seconds(10));
  EXPECT_TRUE(first.acquired);
  EXPECT_EQ(first.holder, "one");
  clock_.Advance(seconds(4));
  const Lease refused = *other->AcquireLease("leader", "two", seconds(10));
  EXPECT_FALSE(refused.acquired);
  EXPECT_EQ(refused.holder, "one");
  EXPECT_EQ(refused.epoch, first.epoch);
  EXPECT_EQ(refused.remaining, seconds(6));
  EXPECT_TRUE(store_->RenewLease(first.fence(), seconds(10)).ok());
  clock_.Advance(seconds(9));
  EXPECT_FALSE(other->AcquireLease("leader", "two", seconds(10))->acquired);
  clock_.Advance(seconds(1));
  const Lease second = *other->AcquireLease("leader", "two", seconds(10));
  EXPECT_TRUE(second.acquired);
  EXPECT_GT(second.epoch, first.epoch);
  const Status late = store_->RenewLease(first.fence(), seconds(10)).status();
  EXPECT_EQ(late.code(), Code::kAborted);
  EXPECT_THAT(late.message(), HasSubstr("another took over"));
}

TEST_P(StoreLeases, AHolderThatStartsAgainNeedNotWait) {
  store_ = Open(&clock_);
  const Lease first = *store_->AcquireLease("leader", "one", seconds(10));
  const Lease again = *store_->AcquireLease("leader", "one", seconds(10));
  EXPECT_TRUE(again.acquired);
  EXPECT_GT(again.epoch, first.epoch);
}

TEST_P(StoreLeases, AnExpiredLeaseThatNoOtherTookIsExtended) {
  store_ = Open(&clock_);
  const Lease first = *store_->AcquireLease("leader", "one", seconds(10));
  clock_.Advance(seconds(20));
  EXPECT_TRUE(store_->RenewLease(first.fence(), seconds(10)).ok());
  EXPECT_FALSE(store_->AcquireLease("leader", "two", seconds(10))->acquired);
}

TEST_P(StoreLeases, AReleasedLeaseIsFreeAtOnceAndItsEpochOld) {
  const Lease first = *store_->AcquireLease("leader", "one", seconds(10));
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  EXPECT_TRUE(Note(store_.get(), "a-1", first.fence()).ok());
  ASSERT_TRUE(store_->ReleaseLease(first.fence()).ok());
  EXPECT_TRUE(store_->ReleaseLease(first.fence()).ok());
  EXPECT_EQ(Note(store_.get(), "a-1", first.fence()).code(), Code::kAborted);
  EXPECT_TRUE(store_->AcquireLease("leader", "two", seconds(10))->acquired);
}

TEST_P(StoreLeases, BadArgumentsAreRefused) {
  EXPECT_EQ(store_->AcquireLease("", "one", seconds(1)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->AcquireLease("l", "caf\xe9", seconds(1)).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(store_->AcquireLease("l", "one", seconds(0)).status().code(), Code::kInvalidArgument);
}

TEST_P(StoreLeases, EveryWriteOfAnOldEpochIsRefused) {
  store_ = Open(&clock_);
  const std::unique_ptr<Store> other = Open(&clock_);
  const Lease first = *store_->AcquireLease(kLeaderLease, "one", seconds(10));
  store_->SetFence(first.fence());
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  EXPECT_EQ(store_->GetJob("a-1")->lease_epoch, first.epoch);
  ASSERT_TRUE(Append("a-1", NoteEvent(At(1), "n")).ok());
  EXPECT_EQ(store_->GetJob("a-1")->lease_epoch, first.epoch);
  clock_.Advance(seconds(10));
  const Lease second = *other->AcquireLease(kLeaderLease, "two", seconds(10));
  ASSERT_TRUE(second.acquired);
  const int64_t before = *store_->LastPosition();
  const ProcessIdentity owner = store_->GetJob("a-1")->owner;
  EXPECT_EQ(store_->Submit(SomeJob("b-1")).code(), Code::kAborted);
  EXPECT_EQ(Append("a-1", NoteEvent(At(2), "n")).code(), Code::kAborted);
  EXPECT_EQ(store_
                ->AppendDecided(
                    "a-1", [](const auto&) { return std::vector<Event>{}; }, Durability::kWritten)
                .code(),
            Code::kAborted);
  EXPECT_EQ(store_->ClaimOwnership("a-1", owner, {}, At(2)).status().code(), Code::kAborted);
  EXPECT_EQ(store_->Remove("a-1").code(), Code::kAborted);
  EXPECT_EQ(store_->records().Put("k", "a", {}, kAbsent, At(2)).status().code(), Code::kAborted);
  EXPECT_EQ(store_->records().DeleteOlder("k", At(9)).status().code(), Code::kAborted);
  EXPECT_EQ(*store_->LastPosition(), before);
  other->SetFence(second.fence());
  const Event note = NoteEvent(At(3), "n");
  EXPECT_TRUE(other->Append("a-1", {&note, 1}, Durability::kSynced).ok());
  EXPECT_EQ(store_->GetJob("a-1")->lease_epoch, second.epoch);
}

TEST_P(StoreLeases, AnAppendThatIsRepeatedIsStoredOnce) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  const std::vector<Event> events = {StateEvent(At(2), JobState::kAdmitted, "x"),
                                     NoteEvent(At(3), "caf\xe9")};
  const AppendCheck check{.fence = {}, .after = 1};
  ASSERT_TRUE(store_->AppendChecked("a-1", events, Durability::kSynced, check).ok());
  EXPECT_TRUE(store_->AppendChecked("a-1", events, Durability::kSynced, check).ok());
  EXPECT_EQ(store_->GetJob("a-1")->last_seq, 3);
  const std::vector<Event> others = {NoteEvent(At(2), "other")};
  EXPECT_EQ(store_->AppendChecked("a-1", others, Durability::kSynced, check).code(),
            Code::kAborted);
  EXPECT_EQ(store_->GetJob("a-1")->last_seq, 3);
}

// The child leads and stops between two writes; this process takes over; the child is revived.
TEST_P(StoreLeases, AStoppedAndRevivedLeaderChangesNothing) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  TestChild child([&](int out) {
    const std::unique_ptr<Store> store = Open();
    const Lease lease = store->AcquireLease(kLeaderLease, "first", milliseconds(300)).value_or({});
    store->SetFence(lease.fence());
    const Event note = NoteEvent(At(1), "of the first");
    if (!store->Append("a-1", {&note, 1}, Durability::kSynced).ok()) return 1;
    WriteLine(out, "leads");
    ::raise(SIGSTOP);
    const Code late = store->Append("a-1", {&note, 1}, Durability::kSynced).code();
    return late == Code::kAborted ? 0 : 2;
  });
  ASSERT_EQ(child.ReadLine(), "leads");
  ASSERT_TRUE(child.WaitUntilStopped());
  const Lease lease = TakeOver(store_.get(), seconds(10));
  ASSERT_TRUE(lease.acquired);
  store_->SetFence(lease.fence());
  ASSERT_TRUE(Append("a-1", NoteEvent(At(2), "of the second")).ok());
  const int64_t before = *store_->LastPosition();
  child.Signal(SIGCONT);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(*store_->LastPosition(), before);
  EXPECT_EQ(store_->ReadEvents("a-1", 0, 10)->size(), 3u);
}

// Whatever a killed process was told is stored, and what it was not told is stored whole or not at
// all. The kill comes wherever the child is when its line has been read.
TEST_P(StoreLeases, AKilledWriterLosesNothingThatItWasTold) {
  for (int round = 0; round < 8; ++round) {
    const std::string prefix = "r" + std::to_string(round) + "-";
    int told = 0;
    {
      TestChild child([&](int out) {
        const std::unique_ptr<Store> store = Open();
        for (int i = 0;; ++i) {
          const std::string id = prefix + std::to_string(i);
          const std::vector<Event> events = {NoteEvent(At(1), "a"), NoteEvent(At(1), "b")};
          if (!store->Submit(SomeJob(id)).ok()) return 1;
          if (!store->Append(id, events, Durability::kWritten).ok()) return 1;
          WriteLine(out, id);
        }
      });
      while (told <= round) {
        ASSERT_EQ(child.ReadLine(), prefix + std::to_string(told));
        ++told;
      }
      child.Signal(SIGKILL);
      EXPECT_EQ(child.Wait(), -1);
      for (std::string line = child.ReadLine(); line == prefix + std::to_string(told);
           line = child.ReadLine())
        ++told;  // written before the kill
    }
    store_ = Open();
    for (int i = 0; i < told; ++i)
      EXPECT_EQ(store_->GetJob(prefix + std::to_string(i))->last_seq, 3);
  }
  size_t events = 0;
  const std::vector<JobRecord> jobs = store_->ListJobs({}).value();
  for (const JobRecord& job : jobs) {
    EXPECT_TRUE(job.last_seq == 1 || job.last_seq == 3) << job.id << " " << job.last_seq;
    events += store_->ReadEvents(job.id, 0, 10)->size();
  }
  EXPECT_EQ(store_->ReadAllEvents(0, 100'000)->size(), events);
}

// Counts the calls of a Leader.
struct Lead {
  std::atomic<int> led{0};
  std::atomic<int> lost{0};
  std::atomic<int64_t> epoch{0};
  std::unique_ptr<Leader> leader;
  Lead(Store* store, const std::string& holder) {
    LeaderOptions options{holder, milliseconds(400), milliseconds(20)};
    leader = std::make_unique<Leader>(
        store, options,
        [this](const Fence& fence) {
          epoch = fence.epoch;
          Tell(&led);
        },
        [this](const Status&) { Tell(&lost); });
  }
  static void Tell(std::atomic<int>* count) {
    ++*count;
    count->notify_all();
  }
};

TEST_P(StoreLeases, ALeaderThatLeavesIsReplacedAtOnce) {
  const std::unique_ptr<Store> other = Open();
  Lead first(store_.get(), "one");
  first.led.wait(0);
  EXPECT_TRUE(first.leader->leading());
  Lead second(other.get(), "two");
  EXPECT_FALSE(other->AcquireLease(kLeaderLease, "three", seconds(1))->acquired);
  EXPECT_EQ(second.led, 0);
  first.leader.reset();
  second.led.wait(0);
  EXPECT_TRUE(second.leader->leading());
  EXPECT_EQ(first.lost, 0);
}

TEST_P(StoreLeases, AKilledLeaderIsReplacedWhenItsLeaseEnds) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  TestChild child([&](int out) {
    const std::unique_ptr<Store> store = Open();
    const Lead lead(store.get(), "one");
    lead.led.wait(0);
    WriteLine(out, "leads");
    ::pause();
    return 0;
  });
  ASSERT_EQ(child.ReadLine(), "leads");
  const TimePoint begin = RealClock::Get()->Now();
  Lead second(store_.get(), "two");
  child.Signal(SIGKILL);
  EXPECT_EQ(child.Wait(), -1);
  second.led.wait(0);
  EXPECT_LT(RealClock::Get()->Now() - begin, seconds(10));
  EXPECT_TRUE(Append("a-1", NoteEvent(At(1), "of the second")).ok());
}

// Another holder has taken the lease while this one was stopped.
TEST_P(StoreLeases, ALeaderThatWasReplacedIsTold) {
  Lead first(store_.get(), "one");
  first.led.wait(0);
  const std::unique_ptr<Store> other = Open();
  ASSERT_TRUE(other->ReleaseLease({kLeaderLease, first.epoch}).ok());
  ASSERT_TRUE(other->AcquireLease(kLeaderLease, "two", seconds(100))->acquired);
  first.lost.wait(0);
  EXPECT_EQ(store_->Submit(SomeJob("a-1")).code(), Code::kAborted);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreLeases, testing::ValuesIn(StoreKinds()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace shoal::controller
