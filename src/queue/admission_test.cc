#include "queue/admission.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

namespace shoal::queue {
namespace {

Demand Gpus(int64_t n) { return {1000 * n, n << 30, n}; }

TEST(Fifo, TheFirstThatDoesNotFitHoldsBackTheRest) {
  Snapshot snapshot;
  snapshot.capacity.gpu = 4;
  snapshot.running = {{"r1", "big", Gpus(2)}, {"r2", "small", Gpus(1)}};
  snapshot.waiting = {{"c", "third", 30, Gpus(1)},
                      {"a", "first", 10, Gpus(1)},
                      {"b", "second", 20, Gpus(3)},
                      {"d", "fourth", 40, Gpus(0)}};
  const SnapshotDecision decision = MakeFifoAdmission()->Decide(snapshot);
  EXPECT_EQ(decision.admit, std::vector<std::string>{"a"});
  EXPECT_EQ(decision.pending_reasons.at("b"),
            "first in line; needs 3 GPU and 0 GPU is free: big (r1) holds 2 GPU and 2 other jobs "
            "the rest");
  EXPECT_EQ(decision.pending_reasons.at("c"), "behind second (b), which is first in line");
  EXPECT_EQ(decision.pending_reasons.at("d"),
            "behind second (b), which is first in line; 2 jobs are before it");
  EXPECT_TRUE(decision.rejected.empty());
}

TEST(Fifo, WhatCanNeverFitIsRefusedAndHoldsNobodyBack) {
  Snapshot snapshot;
  snapshot.capacity.memory_bytes = int64_t{4} << 30;
  snapshot.waiting = {{"a", "huge", 1, Gpus(5)}, {"b", "fine", 2, Gpus(4)}};
  const SnapshotDecision decision = MakeFifoAdmission()->Decide(snapshot);
  EXPECT_EQ(decision.admit, std::vector<std::string>{"b"});
  EXPECT_EQ(decision.rejected.at("a"),
            "huge can never start here: all its tasks together ask for 5 GiB memory, and there is "
            "4 GiB memory in all; ask for less or for fewer replicas");
}

TEST(Fifo, NothingSetIsNotLimited) {
  Snapshot snapshot;
  snapshot.capacity.memory_bytes = int64_t{1} << 50;
  snapshot.capacity.gpu = 0;
  snapshot.waiting = {{"a", "a", 1, {int64_t{1} << 60, 1, 0}},
                      {"b", "b", 2, {int64_t{1} << 60, 1, 0}}};
  EXPECT_EQ(MakeFifoAdmission()->Decide(snapshot).admit.size(), 2u);
}

TEST(Fifo, MoreRunningThanThereIsIsSurvived) {
  Snapshot snapshot;
  snapshot.capacity.gpu = 1;
  snapshot.running = {{"r", "r", Gpus(3)}};
  snapshot.waiting = {{"a", "a", 1, Gpus(1)}, {"b", "b", 2, {}}};
  const SnapshotDecision decision = MakeFifoAdmission()->Decide(snapshot);
  EXPECT_TRUE(decision.admit.empty());
  EXPECT_EQ(decision.pending_reasons.size(), 2u);
}

Demand AnyDemand() {
  return {*rc::gen::inRange<int64_t>(0, 8), *rc::gen::inRange<int64_t>(0, 8),
          *rc::gen::inRange<int64_t>(0, 8)};
}

std::optional<int64_t> AnyLimit() {
  return *rc::gen::arbitrary<bool>() ? std::optional<int64_t>(*rc::gen::inRange<int64_t>(0, 16))
                                     : std::nullopt;
}

Snapshot AnySnapshot() {
  Snapshot snapshot;
  snapshot.capacity = {AnyLimit(), AnyLimit(), AnyLimit()};
  const int waiting = *rc::gen::inRange(0, 12);
  for (int i = 0; i < waiting; ++i) {
    snapshot.waiting.push_back(
        {"w" + std::to_string(i), "name", *rc::gen::inRange<int64_t>(0, 10), AnyDemand()});
  }
  const int running = *rc::gen::inRange(0, 4);
  for (int i = 0; i < running; ++i) {
    snapshot.running.push_back({"r" + std::to_string(i), "name", AnyDemand()});
  }
  return snapshot;
}

bool Exceeds(const Demand& sum, const Capacity& capacity) {
  return sum.cpu_milli > capacity.cpu_milli.value_or(sum.cpu_milli) ||
         sum.memory_bytes > capacity.memory_bytes.value_or(sum.memory_bytes) ||
         sum.gpu > capacity.gpu.value_or(sum.gpu);
}

void AddTo(const Demand& demand, Demand* sum) {
  sum->cpu_milli += demand.cpu_milli;
  sum->memory_bytes += demand.memory_bytes;
  sum->gpu += demand.gpu;
}

TEST(Fifo, NeverOverCapacityInOrderAndAlwaysWithAReason) {
  const auto fifo = MakeFifoAdmission();
  EXPECT_TRUE(rc::check([&] {
    const Snapshot snapshot = AnySnapshot();
    const SnapshotDecision decision = fifo->Decide(snapshot);
    std::set<std::string> admitted(decision.admit.begin(), decision.admit.end());
    RC_ASSERT(admitted.size() == decision.admit.size());
    RC_ASSERT(admitted.size() + decision.pending_reasons.size() + decision.rejected.size() ==
              snapshot.waiting.size());

    Demand sum;
    for (const RunningJob& job : snapshot.running) AddTo(job.demand, &sum);
    const bool full = Exceeds(sum, snapshot.capacity);
    std::vector<WaitingJob> line = snapshot.waiting;
    std::sort(line.begin(), line.end(), [](const WaitingJob& a, const WaitingJob& b) {
      return std::pair(a.order, a.id) < std::pair(b.order, b.id);
    });
    bool blocked = false;
    size_t next = 0;
    for (const WaitingJob& job : line) {
      const bool never = Exceeds(job.demand, snapshot.capacity);
      RC_ASSERT(decision.rejected.contains(job.id) == never);
      if (never) {
        RC_ASSERT(!decision.rejected.at(job.id).empty());
        continue;
      }
      if (!admitted.contains(job.id)) {
        RC_ASSERT(!decision.pending_reasons.at(job.id).empty());
        // Held back only by what is really short or by one that came before.
        Demand with = sum;
        AddTo(job.demand, &with);
        RC_ASSERT(blocked || full || Exceeds(with, snapshot.capacity));
        blocked = true;
        continue;
      }
      RC_ASSERT(!blocked);
      RC_ASSERT(decision.admit[next++] == job.id);
      AddTo(job.demand, &sum);
      RC_ASSERT(full || !Exceeds(sum, snapshot.capacity));
    }
  }));
}

TEST(Fifo, DoesNotDependOnTheOrderOfTheSnapshot) {
  const auto fifo = MakeFifoAdmission();
  EXPECT_TRUE(rc::check([&] {
    Snapshot snapshot = AnySnapshot();
    const SnapshotDecision before = fifo->Decide(snapshot);
    std::reverse(snapshot.waiting.begin(), snapshot.waiting.end());
    const SnapshotDecision after = fifo->Decide(snapshot);
    RC_ASSERT(before.admit == after.admit);
    RC_ASSERT(before.pending_reasons == after.pending_reasons);
  }));
}

TEST(Demand, IsTheSumOfAllTasks) {
  job::Job job;
  job.roles.resize(2);
  job.roles[0].replicas = 3;
  job.roles[0].resources = {0.5, 100, 1};
  job.roles[1].replicas = 100'000;
  job.roles[1].resources = {0.0001, job::kMaxMemoryBytes, 0};
  const Demand demand = DemandOf(job);
  EXPECT_EQ(demand.cpu_milli, 1500 + 100'000);
  EXPECT_EQ(demand.memory_bytes, 300 + 100'000 * job::kMaxMemoryBytes);
  EXPECT_EQ(demand.gpu, 3);
  // What is set aside may be less than the limit.
  job.roles[0].resources.cpu_request = 0.25;
  job.roles[0].resources.memory_request = 10;
  EXPECT_EQ(DemandOf(job).cpu_milli, 750 + 100'000);
  EXPECT_EQ(DemandOf(job).memory_bytes, 30 + 100'000 * job::kMaxMemoryBytes);
}

}  // namespace
}  // namespace shoal::queue
