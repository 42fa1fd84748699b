// Clocks, barriers, the issue gate and blobs, each without a network.
#include "ps/server/worker_registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "ps/client/marker_gate.h"
#include "ps/storage/blob_store.h"

namespace shoal::ps {
namespace {

Answer Into(int* times) {
  return [times](const Status& status, std::string_view) { *times += status.ok(); };
}

TEST(WorkerRegistry, WaitsForWorkersThatHaveNotComeYet) {
  WorkerRegistry workers(2);
  workers.Join(0, 1, 0);
  int passed = 0;
  workers.ReportClock(0, 1, 0, Into(&passed));
  EXPECT_EQ(passed, 0);
  workers.Join(1, 2, 0);
  EXPECT_EQ(passed, 0);
  int other = 0;
  workers.ReportClock(1, 1, 0, Into(&other));
  EXPECT_EQ(passed, 1);
  EXPECT_EQ(other, 1);
}

TEST(WorkerRegistry, StalenessIsHowFarAheadOneMayBe) {
  for (const uint32_t staleness : {0u, 1u, 3u}) {
    WorkerRegistry workers(2);
    workers.Join(0, 1, 0);
    workers.Join(1, 2, 0);
    for (uint64_t n = 1; n <= staleness; ++n) {
      int passed = 0;
      workers.ReportClock(0, n, staleness, Into(&passed));
      EXPECT_EQ(passed, 1);
    }
    int passed = 0;
    workers.ReportClock(0, staleness + 1, staleness, Into(&passed));
    EXPECT_EQ(passed, 0);
    int other = 0;
    workers.ReportClock(1, 1, staleness, Into(&other));
    EXPECT_EQ(passed, 1);
  }
}

TEST(WorkerRegistry, AspNeverWaits) {
  WorkerRegistry workers(2);
  workers.Join(0, 1, 0);
  int passed = 0;
  workers.ReportClock(0, 100, std::nullopt, Into(&passed));
  EXPECT_EQ(passed, 1);
}

TEST(WorkerRegistry, WhoLeavesABarrierHasNotEnteredIt) {
  WorkerRegistry workers(2);
  workers.Join(0, 1, 0);
  workers.Join(1, 2, 0);
  int first = 0, second = 0;
  workers.EnterBarrier(0, "b", 7, Into(&first));
  EXPECT_FALSE(workers.LeaveBarrier(0, "b", 7));
  EXPECT_FALSE(workers.LeaveBarrier(0, "b", 7));
  EXPECT_EQ(workers.WorkersNotEntered("b"), (std::vector<int>{0, 1}));
  workers.EnterBarrier(1, "b", 3, Into(&second));
  EXPECT_EQ(second, 0);
  workers.EnterBarrier(0, "b", 8, Into(&first));
  EXPECT_FALSE(first == 0 || second == 0);
  // Too late: it was let through, and says so as often as it is asked.
  EXPECT_TRUE(workers.LeaveBarrier(0, "b", 8));
  EXPECT_TRUE(workers.LeaveBarrier(0, "b", 8));
  // Not another entry than the one that was given up.
  workers.EnterBarrier(0, "b", 9, Into(&first));
  EXPECT_FALSE(workers.LeaveBarrier(0, "b", 10));
  workers.EnterBarrier(1, "b", 4, Into(&second));
  EXPECT_EQ(first, 2);
}

TEST(WorkerRegistry, GoneWorkersDoNotCountAndNewcomersStartAtTheSlowest) {
  WorkerRegistry workers(3);
  for (int w = 0; w < 3; ++w) workers.Join(w, static_cast<uint64_t>(w) + 1, 0);
  int passed = 0;
  workers.ReportClock(0, 5, 0, Into(&passed));
  workers.ReportClock(1, 7, 0, Into(&passed));
  workers.Remove(2);
  EXPECT_EQ(passed, 1);  // worker 0; worker 1 waits for it
  EXPECT_EQ(workers.MinClock(), 5u);
  workers.Join(2, 9, 0);
  EXPECT_EQ(workers.MinClock(), 5u);
  workers.Remove(0);
  workers.Remove(2);
  EXPECT_EQ(passed, 2);
  workers.Remove(1);
  EXPECT_EQ(workers.MinClock(), UINT64_MAX);
}

TEST(WorkerRegistry, LateWorkersBeyondTheExpectedCountFromTheirJoin) {
  WorkerRegistry workers(1);
  workers.Join(0, 1, 0);
  int passed = 0;
  workers.ReportClock(0, 4, 0, Into(&passed));
  workers.Join(7, 2, 0);
  EXPECT_EQ(workers.MinClock(), 4u);
  workers.ReportClock(0, 5, 0, Into(&passed));
  EXPECT_EQ(passed, 1);
  workers.ReportClock(7, 5, 0, Into(&passed));
  EXPECT_EQ(passed, 3);
}

TEST(WorkerRegistry, RepeatedBarrierRequestsNeitherDoubleNorHang) {
  WorkerRegistry workers(2);
  workers.Join(0, 1, 0);
  workers.Join(1, 2, 0);
  int first = 0, again = 0, other = 0;
  workers.EnterBarrier(0, "b", 10, Into(&first));
  workers.EnterBarrier(0, "b", 10, Into(&again));  // after a reconnection
  EXPECT_EQ(first + again, 0);
  workers.EnterBarrier(1, "b", 20, Into(&other));
  EXPECT_EQ(first, 0);
  EXPECT_EQ(again, 1);
  EXPECT_EQ(other, 1);
  workers.EnterBarrier(0, "b", 10,
                       Into(&again));  // its answer was lost: it does not enter the next one
  EXPECT_EQ(again, 2);
  workers.EnterBarrier(1, "b", 21, Into(&other));
  EXPECT_EQ(other, 1);
  workers.Remove(0);
  EXPECT_EQ(other, 2);
}

TEST(MarkerGate, TheLastOneOutSendsTheMarker) {
  std::vector<int64_t> sent;
  MarkerGate gate([&](int64_t checkpoint) { sent.push_back(checkpoint); });
  gate.RequestMarker(1);
  EXPECT_EQ(sent, std::vector<int64_t>{1});
  gate.Enter();
  gate.Enter();
  gate.RequestMarker(2);
  gate.Leave();
  gate.Enter();  // nested scopes do not wait for the marker that waits for them
  gate.Leave();
  EXPECT_EQ(sent.size(), 1u);
  gate.Leave();
  EXPECT_EQ(sent, (std::vector<int64_t>{1, 2}));
}

TEST(MarkerGate, MarkersNeverFallIntoAScope) {
  std::atomic<int> inside{0}, markers{0};
  std::atomic<bool> wrong{false};
  MarkerGate gate([&](int64_t) {
    if (inside != 0) wrong = true;
    ++markers;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        gate.Enter();
        ++inside;
        --inside;
        gate.Leave();
      }
    });
  }
  for (int64_t i = 0; i < 500; ++i) gate.RequestMarker(i);
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(wrong);
  EXPECT_GT(markers, 0);
}

TEST(BlobStore, BoundsAndUnfinishedUploads) {
  BlobStore store(10, 15);
  EXPECT_EQ(store.Put({"big", 1, 11, 0, "x"}).code(), Code::kResourceExhausted);
  ASSERT_TRUE(store.Put({"a", 2, 10, 0, "01234"}).ok());
  uint64_t version = 0;
  EXPECT_EQ(store.Get("a", &version), nullptr);
  EXPECT_EQ(store.Put({"b", 3, 6, 0, "x"}).code(), Code::kResourceExhausted);
  EXPECT_EQ(store.Put({"a", 2, 10, 7, "789"}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(store.Put({"a", 2, 10, 0, "01234"}).ok());  // came again
  ASSERT_TRUE(store.Put({"a", 2, 10, 5, "56789"}).ok());
  EXPECT_TRUE(store.Put({"a", 2, 10, 5, "56789"}).ok());
  EXPECT_EQ(*store.Get("a", &version), "0123456789");
  EXPECT_EQ(version, 2u);
  EXPECT_EQ(store.Put({"c", 4, 5, 3, "xx"}).code(), Code::kAborted);
  store.OwnUpload(5, 77);
  ASSERT_TRUE(store.Put({"d", 5, 5, 0, "x"}).ok());
  EXPECT_EQ(store.Put({"e", 6, 1, 0, "x"}).code(), Code::kResourceExhausted);
  store.ForgetUploadsOf(77);
  EXPECT_TRUE(store.Put({"e", 6, 1, 0, "x"}).ok());
  store.Delete("a");
  EXPECT_EQ(store.List("").size(), 1u);
}

}  // namespace
}  // namespace shoal::ps
