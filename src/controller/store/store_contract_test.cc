// The contract of every Store implementation: jobs, tasks and events. store_pages_test.cc and
// store_leases_test.cc have the rest. A new implementation is added in test_store_kinds.h.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "controller/store/process_identity.h"
#include "controller/store/store.h"
#include "controller/store/test_store_kinds.h"

namespace shoal::controller {
namespace {

using StoreContract = StoreTest;

TEST_P(StoreContract, SubmittedJobIsPendingAndSurvivesReopening) {
  const Status first = store_->Submit(SomeJob("a-1"));
  ASSERT_TRUE(first.ok()) << first.ToString();
  store_ = Open();
  const Result<JobRecord> job = store_->GetJob("a-1");
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  EXPECT_EQ(job->state, JobState::kPending);
  EXPECT_EQ(job->name, "name-of-a-1");
  EXPECT_EQ(job->engine, "local");
  EXPECT_EQ(job->owner, (ProcessIdentity{17, 42, "boot", 4026531836}));
  EXPECT_EQ(job->submitted, At(100));
  EXPECT_EQ(ToText(job->job), R"({"name":"x"})");
}

TEST_P(StoreContract, SameIdTwiceIsRefused) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  EXPECT_EQ(store_->Submit(SomeJob("a-1")).code(), Code::kAlreadyExists);
}

TEST_P(StoreContract, AJobThatIsNotUtf8IsRefusedWithItsPlace) {
  NewJob job = SomeJob("a-1");
  job.job["data"] = json::array{json::object{{"source", "/tmp/caf\xe9.txt"}}};
  const Status refused = store_->Submit(job);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), testing::HasSubstr("'data[0].source'"));
  EXPECT_THAT(refused.message(), testing::HasSubstr("caf\\xe9.txt"));
  EXPECT_TRUE(store_->ListJobs({})->empty());
}

TEST_P(StoreContract, EventsThatAreNotUtf8CanBeReadAgain) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  ASSERT_TRUE(Append("a-1", NoteEvent(At(101), "caf\xe9")).ok());
  ASSERT_TRUE(
      Append("a-1", EndedEvent(At(102), JobState::kFailed, "in caf\xe9", {{"caf\xe9", "\xe9"}}))
          .ok());
  store_ = Open();
  EXPECT_EQ(store_->GetJob("a-1")->reason, "in caf\xef\xbf\xbd");
  EXPECT_EQ(store_->GetJob("a-1")->damage, "");
  EXPECT_EQ(GetStringOr(store_->ReadEvents("a-1", 1, 1)->at(0).body, "text", ""),
            "caf\xef\xbf\xbd");
}

TEST_P(StoreContract, EventsMakeTheState) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  Finish("a-1", JobState::kSucceeded);
  const Result<JobRecord> job = store_->GetJob("a-1");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state, JobState::kSucceeded);
  EXPECT_EQ(job->reason, "because");
  EXPECT_EQ(job->started, At(103));
  EXPECT_EQ(job->ended, At(105));
  EXPECT_EQ(job->owner.pid, 0);
  EXPECT_EQ(ToText(job->result), R"({"loss":5E-1})");
}

TEST_P(StoreContract, StateIsWhatTheLogSays) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  Finish("a-1", JobState::kFailed);
  const Result<std::vector<Event>> events = store_->ReadEvents("a-1", 0, 100);
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), 6u);
  JobRecord rebuilt;
  rebuilt.id = "a-1";
  for (const Event& event : *events) ASSERT_TRUE(ApplyEvent(event, &rebuilt).ok()) << event.type;
  const JobRecord stored = *store_->GetJob("a-1");
  EXPECT_EQ(rebuilt.state, stored.state);
  EXPECT_EQ(rebuilt.reason, stored.reason);
  EXPECT_EQ(rebuilt.started, stored.started);
  EXPECT_EQ(rebuilt.last_seq, stored.last_seq);
  EXPECT_EQ(events->back().seq, 6);
}

TEST_P(StoreContract, EventsAreReadFromAnywhere) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  Finish("a-1", JobState::kFailed);
  const Result<std::vector<Event>> events = store_->ReadEvents("a-1", 3, 2);
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), 2u);
  EXPECT_EQ((*events)[0].seq, 4);
  EXPECT_EQ((*events)[1].type, "finishing");
}

TEST_P(StoreContract, NoJobChangesItsVerdict) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  Finish("a-1", JobState::kFailed);
  EXPECT_EQ(Append("a-1", EndedEvent(At(200), JobState::kCancelled, "", {})).code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(Append("a-1", StateEvent(At(200), JobState::kRunning, "")).code(),
            Code::kFailedPrecondition);
  EXPECT_TRUE(Append("a-1", NoteEvent(At(200), "looked at")).ok());
  EXPECT_EQ(store_->GetJob("a-1")->state, JobState::kFailed);
}

TEST_P(StoreContract, FailedAppendKeepsNothingOfIt) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  const std::vector<Event> events = {NoteEvent(At(1), "kept?"),
                                     StateEvent(At(1), JobState::kRunning, "too early")};
  EXPECT_FALSE(store_->Append("a-1", events, Durability::kSynced).ok());
  EXPECT_EQ(store_->ReadEvents("a-1", 0, 100)->size(), 1u);
  EXPECT_EQ(store_->GetJob("a-1")->last_seq, 1);
}

TEST_P(StoreContract, AppendToAnUnknownJobIsNotFound) {
  EXPECT_EQ(Append("nobody", NoteEvent(At(1), "")).code(), Code::kNotFound);
}

TEST_P(StoreContract, TasksKeepTheirLastWordAndOrder) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  TaskRecord worker{"worker", 1, 0, job::TaskState::kRunning, {}, false, ""};
  TaskRecord server{"server", 0, 0, job::TaskState::kRunning, {}, false, ""};
  ASSERT_TRUE(Append("a-1", TaskEvent(At(1), worker)).ok());
  ASSERT_TRUE(Append("a-1", TaskEvent(At(1), server)).ok());
  worker.index = 0;
  ASSERT_TRUE(Append("a-1", TaskEvent(At(1), worker)).ok());
  worker.state = job::TaskState::kEnded;
  worker.end = job::Exited(7);
  worker.attempt = 2;
  ASSERT_TRUE(Append("a-1", TaskEvent(At(2), worker)).ok());
  const Result<std::vector<TaskRecord>> tasks = store_->ListTasks("a-1");
  ASSERT_TRUE(tasks.ok()) << tasks.status().ToString();
  ASSERT_EQ(tasks->size(), 3u);
  EXPECT_EQ((*tasks)[0].role, "worker");
  EXPECT_EQ((*tasks)[0].index, 0);
  EXPECT_EQ((*tasks)[0].attempt, 2);
  EXPECT_EQ((*tasks)[0].end->exit_code, 7);
  EXPECT_EQ((*tasks)[1].index, 1);
  EXPECT_EQ((*tasks)[2].role, "server");
}

TEST_P(StoreContract, JobsAreListedNewestFirst) {
  for (const char* id : {"a-1", "b-2", "c-3"}) ASSERT_TRUE(store_->Submit(SomeJob(id)).ok());
  Finish("b-2", JobState::kSucceeded);
  const auto ids = [&](const JobQuery& query) {
    std::vector<std::string> out;
    const std::vector<JobRecord> jobs = store_->ListJobs(query).value();
    for (const JobRecord& job : jobs) out.push_back(job.id);
    return out;
  };
  EXPECT_THAT(ids({}), testing::ElementsAre("c-3", "b-2", "a-1"));
  EXPECT_THAT(ids({.ended = false}), testing::ElementsAre("c-3", "a-1"));
  EXPECT_THAT(ids({.unfinished = false}), testing::ElementsAre("b-2"));
  EXPECT_THAT(ids({.limit = 1}), testing::ElementsAre("c-3"));
}

TEST_P(StoreContract, PrefixNamesOneJobOrNone) {
  for (const char* id : {"words-1a", "words-1b", "words"})
    ASSERT_TRUE(store_->Submit(SomeJob(id)).ok());
  EXPECT_EQ(store_->FindJob("words-1a")->id, "words-1a");
  EXPECT_EQ(store_->FindJob("words")->id, "words");  // a whole name wins
  EXPECT_EQ(store_->FindJob("words-1").status().code(), Code::kInvalidArgument);
  EXPECT_THAT(store_->FindJob("words-1").status().message(), testing::HasSubstr("words-1b"));
  EXPECT_EQ(store_->FindJob("x").status().code(), Code::kNotFound);
  EXPECT_EQ(store_->FindJob("").status().code(), Code::kNotFound);
  EXPECT_EQ(store_->FindJob("w%").status().code(), Code::kNotFound);
}

TEST_P(StoreContract, APrefixOfSeveralMeansTheOnlyOneThatHasNotEnded) {
  for (const char* id : {"words-1a", "words-1b", "words-1c"})
    ASSERT_TRUE(store_->Submit(SomeJob(id)).ok());
  Finish("words-1a", JobState::kFailed);
  EXPECT_EQ(store_->FindJob("words").status().code(), Code::kInvalidArgument);
  Finish("words-1c", JobState::kSucceeded);
  EXPECT_EQ(store_->FindJob("words")->id, "words-1b");
  Finish("words-1b", JobState::kSucceeded);
  EXPECT_EQ(store_->FindJob("words").status().code(), Code::kInvalidArgument);
}

TEST_P(StoreContract, OnlyOneProcessClaimsAJob) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  const std::unique_ptr<Store> other = Open();
  const ProcessIdentity dead{17, 42, "boot", 4026531836};
  const ProcessIdentity me{18, 1, "boot", 0};
  const ProcessIdentity you{19, 1, "boot", 0};
  EXPECT_TRUE(*store_->ClaimOwnership("a-1", dead, me, At(1)));
  EXPECT_FALSE(*other->ClaimOwnership("a-1", dead, you, At(1)));
  EXPECT_EQ(other->GetJob("a-1")->owner, me);
  Finish("a-1", JobState::kFailed);
  EXPECT_FALSE(*other->ClaimOwnership("a-1", {}, you, At(1)));
}

TEST_P(StoreContract, DecisionsOfTwoProcessesSeeEachOther) {
  constexpr int kJobs = 12;
  for (int i = 0; i < kJobs; ++i)
    ASSERT_TRUE(store_->Submit(SomeJob("j-" + std::to_string(i))).ok());
  // Five slots; every job asks for one, from two stores at once.
  const std::unique_ptr<Store> other = Open();
  const auto ask = [&](Store* store, const std::string& id) {
    return store->AppendDecided(
        id,
        [](const std::vector<JobRecord>& jobs) -> std::vector<Event> {
          int taken = 0;
          for (const JobRecord& job : jobs) taken += job.state != JobState::kPending ? 1 : 0;
          if (taken >= 5) return {};
          return {StateEvent(At(1), JobState::kAdmitted, "")};
        },
        Durability::kWritten);
  };
  std::thread thread([&] {
    for (int i = 0; i < kJobs; i += 2) EXPECT_TRUE(ask(other.get(), "j-" + std::to_string(i)).ok());
  });
  for (int i = 1; i < kJobs; i += 2) EXPECT_TRUE(ask(store_.get(), "j-" + std::to_string(i)).ok());
  thread.join();
  int admitted = 0;
  const std::vector<JobRecord> jobs = store_->ListJobs({}).value();
  for (const JobRecord& job : jobs) admitted += job.state == JobState::kAdmitted ? 1 : 0;
  EXPECT_EQ(admitted, 5);
}

TEST_P(StoreContract, CommitsOfOthersAreToldWhenTheyCanBeSeen) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  const std::unique_ptr<Store> other = Open();
  std::atomic<int> told{0};
  std::atomic<int64_t> seen{0};
  Result<std::unique_ptr<Store::Watcher>> watch = store_->Watch([&] {
    seen = store_->GetJob("a-1")->last_seq;
    ++told;
    told.notify_all();
  });
  ASSERT_TRUE(watch.ok()) << watch.status().ToString();
  for (int i = 1; i <= 20; ++i) {
    const int before = told;
    const Event note = NoteEvent(At(i), "n");
    ASSERT_TRUE(other->Append("a-1", {&note, 1}, Durability::kSynced).ok());
    // Waits for the notification of this commit; ctest's time limit bounds the wait.
    for (int now = before; seen.load() < 1 + i; now = told) told.wait(now);
  }
}

TEST_P(StoreContract, EndedJobsAreRemovedWithAllThatTheyHad) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  ASSERT_TRUE(store_->Submit(SomeJob("b-1")).ok());
  EXPECT_EQ(store_->Remove("c-1").code(), Code::kNotFound);
  EXPECT_EQ(store_->Remove("a-1").code(), Code::kFailedPrecondition);
  ASSERT_TRUE(Append("a-1", EndedEvent(At(9), JobState::kCancelled, "", {})).ok());
  ASSERT_TRUE(store_->Remove("a-1").ok());
  EXPECT_EQ(store_->GetJob("a-1").status().code(), Code::kNotFound);
  EXPECT_TRUE(store_->ReadEvents("a-1", 0, 10)->empty());
  EXPECT_EQ(store_->ListJobs({})->size(), 1u);
  // Its name may be used again.
  EXPECT_TRUE(store_->Submit(SomeJob("a-1")).ok());
}

TEST_P(StoreContract, ExpiredAreThoseThatSaidSo) {
  NewJob kept = SomeJob("kept-1");
  NewJob short_kept = SomeJob("short-1");
  short_kept.job = {{"limits", json::object{{"keep_records_ms", 5'000}}}};
  ASSERT_TRUE(store_->Submit(kept).ok());
  ASSERT_TRUE(store_->Submit(short_kept).ok());
  EXPECT_TRUE(store_->ListExpired(At(1'000'000))->empty());
  for (const char* id : {"kept-1", "short-1"}) {
    ASSERT_TRUE(Append(id, EndedEvent(At(100), JobState::kFailed, "", {})).ok());
  }
  EXPECT_TRUE(store_->ListExpired(At(104))->empty());
  EXPECT_EQ(*store_->ListExpired(At(105)), std::vector<std::string>{"short-1"});
}

TEST_P(StoreContract, CommitsAreCounted) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  ASSERT_TRUE(Append("a-1", NoteEvent(At(1), "")).ok());
  ASSERT_TRUE(Append("a-1", NoteEvent(At(1), "")).ok());
  EXPECT_EQ(store_->counters().synced_commits, 1u);
  EXPECT_EQ(store_->counters().written_commits, 2u);
}

TEST_P(StoreContract, TwoProcessesWriteAtOnce) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  const std::unique_ptr<Store> other = Open();
  constexpr int kEach = 50;
  const auto write = [](Store* store) {
    for (int i = 0; i < kEach; ++i) {
      const Event note = NoteEvent(At(i), "n");
      EXPECT_TRUE(store->Append("a-1", {&note, 1}, Durability::kWritten).ok());
    }
  };
  std::thread thread([&] { write(other.get()); });
  write(store_.get());
  thread.join();
  EXPECT_EQ(store_->ReadEvents("a-1", 0, 1000)->size(), 1u + 2 * kEach);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, testing::ValuesIn(StoreKinds()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace shoal::controller
