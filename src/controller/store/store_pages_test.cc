// The contract of every Store implementation: pages of jobs, events of all jobs, records, the audit
// log and backups.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "controller/store/cursor.h"
#include "controller/store/open_store.h"
#include "controller/store/test_store_kinds.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using StorePages = StoreTest;

std::vector<std::string> Ids(const Result<JobPage>& page) {
  EXPECT_TRUE(page.ok()) << page.status().ToString();
  std::vector<std::string> ids;
  if (page.ok())
    for (const JobSummary& job : page->jobs) ids.push_back(job.id);
  return ids;
}

NewJob TeamJob(const std::string& id, const std::string& team, const std::string& user,
               JobLabels labels = {}) {
  NewJob job = SomeJob(id);
  job.team = team;
  job.user = user;
  job.labels = std::move(labels);
  return job;
}

TEST_P(StorePages, WhoSubmittedAJobIsKeptAndInItsLog) {
  ASSERT_TRUE(store_->Submit(TeamJob("a-1", "ads", "eve", {{"project", "x"}})).ok());
  const JobRecord job = *store_->GetJob("a-1");
  EXPECT_EQ(job.team, "ads");
  EXPECT_EQ(job.user, "eve");
  EXPECT_EQ(job.labels, (JobLabels{{"project", "x"}}));
  JobRecord rebuilt;
  ASSERT_TRUE(ApplyEvent(store_->ReadEvents("a-1", 0, 1)->at(0), &rebuilt).ok());
  EXPECT_EQ(rebuilt.team, "ads");
  EXPECT_EQ(rebuilt.user, "eve");
  EXPECT_EQ(rebuilt.labels, job.labels);
}

TEST_P(StorePages, PagesCoverAllJobsOnceNewestFirst) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(store_->Submit(SomeJob("j-" + std::to_string(i))).ok());
  std::vector<std::string> all;
  std::string after;
  int pages = 0;
  do {
    const Result<JobPage> page = store_->ListPage({}, after, 3);
    for (const std::string& id : Ids(page)) all.push_back(id);
    after = page->next;
    ++pages;
    // A job that is submitted meanwhile moves no page.
    ASSERT_TRUE(store_->Submit(SomeJob("new-" + std::to_string(pages))).ok());
  } while (!after.empty());
  EXPECT_THAT(all, ElementsAre("j-6", "j-5", "j-4", "j-3", "j-2", "j-1", "j-0"));
  EXPECT_EQ(pages, 3);
}

TEST_P(StorePages, ASummaryShowsTheJob) {
  ASSERT_TRUE(store_->Submit(TeamJob("a-1", "ads", "eve", {{"project", "x"}})).ok());
  Finish("a-1", JobState::kFailed);
  const JobSummary job = store_->ListPage({}, "", 1)->jobs.at(0);
  EXPECT_EQ(job.id, "a-1");
  EXPECT_EQ(job.name, "name-of-a-1");
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.reason, "because");
  EXPECT_EQ(job.engine, "local");
  EXPECT_EQ(job.team, "ads");
  EXPECT_EQ(job.user, "eve");
  EXPECT_EQ(job.labels, (JobLabels{{"project", "x"}}));
  EXPECT_EQ(job.submitted, At(100));
  EXPECT_EQ(job.started, At(103));
  EXPECT_EQ(job.ended, At(105));
  EXPECT_EQ(job.last_seq, 6);
}

TEST_P(StorePages, FiltersSelect) {
  ASSERT_TRUE(store_->Submit(TeamJob("a-1", "ads", "eve", {{"p", "x"}, {"q", "1"}})).ok());
  ASSERT_TRUE(store_->Submit(TeamJob("b-1", "ads", "bob", {{"p", "x"}})).ok());
  NewJob other = TeamJob("c-1", "maps", "eve", {{"p", "y"}});
  other.engine = "slurm";
  other.time = At(500);
  ASSERT_TRUE(store_->Submit(other).ok());
  Finish("b-1", JobState::kSucceeded);
  const auto list = [&](const JobFilter& filter) { return Ids(store_->ListPage(filter, "", 10)); };
  const JobState pending = JobState::kPending;
  const JobState done = JobState::kSucceeded;
  EXPECT_THAT(list({.states = {pending}}), ElementsAre("c-1", "a-1"));
  EXPECT_THAT(list({.teams = {"ads"}}), ElementsAre("b-1", "a-1"));
  EXPECT_THAT(list({.states = {pending, done}, .teams = {"maps", "ads"}}),
              ElementsAre("c-1", "b-1", "a-1"));
  EXPECT_THAT(list({.states = {done}, .teams = {"maps"}}), IsEmpty());
  EXPECT_THAT(list({.states = {pending}, .teams = {"ads"}, .user = "bob"}), IsEmpty());
  EXPECT_THAT(list({.states = {done}}), ElementsAre("b-1"));
  EXPECT_THAT(list({.teams = {"maps", "ads"}}), ElementsAre("c-1", "b-1", "a-1"));
  EXPECT_THAT(list({.user = "eve"}), ElementsAre("c-1", "a-1"));
  EXPECT_THAT(list({.engine = "slurm"}), ElementsAre("c-1"));
  EXPECT_THAT(list({.name_prefix = "name-of-b"}), ElementsAre("b-1"));
  EXPECT_THAT(list({.name_prefix = "name-of-%"}), IsEmpty());
  EXPECT_THAT(list({.labels = {{"p", "x"}}}), ElementsAre("b-1", "a-1"));
  EXPECT_THAT(list({.labels = {{"p", "x"}, {"q", "1"}}}), ElementsAre("a-1"));
  EXPECT_THAT(list({.states = {done}, .teams = {"ads"}, .labels = {{"p", "x"}}}),
              ElementsAre("b-1"));
  EXPECT_THAT(list({.since = At(500)}), ElementsAre("c-1"));
  EXPECT_THAT(list({.until = At(500)}), ElementsAre("b-1", "a-1"));
  // Quotes are text.
  EXPECT_THAT(list({.user = "' OR 1=1 --"}), IsEmpty());
}

TEST_P(StorePages, ManyTeamsAndStatesAreFilteredToo) {
  ASSERT_TRUE(store_->Submit(TeamJob("a-1", "t7", "eve")).ok());
  JobFilter filter;
  for (int i = 0; i < 90; ++i) filter.teams.push_back("t" + std::to_string(i));
  filter.states = {JobState::kPending, JobState::kFailed};
  EXPECT_THAT(Ids(store_->ListPage(filter, "", 10)), ElementsAre("a-1"));
  for (int i = 0; i < 20; ++i) filter.teams.push_back("more");
  EXPECT_EQ(store_->ListPage(filter, "", 10).status().code(), Code::kInvalidArgument);
}

TEST_P(StorePages, ABadCursorOrLimitIsRefused) {
  ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  for (const std::string& cursor :
       {std::string("x"), std::string("other-12"), FormatCursor("0123456789abcdef", 7),
        store_->store_id() + "-", store_->store_id() + "--1", store_->store_id() + "-1x",
        store_->store_id() + "-99999999999999999999", std::string(5000, 'a')}) {
    const Status refused = store_->ListPage({}, cursor, 10).status();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << cursor;
    EXPECT_THAT(refused.message(), HasSubstr("is not a cursor of this server"));
  }
  for (const int limit : {-1, 0, 1001})
    EXPECT_EQ(store_->ListPage({}, "", limit).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->ListPage({.user = "caf\xe9"}, "", 1).status().code(), Code::kInvalidArgument);
}

TEST_P(StorePages, EventsOfAllJobsComeInCommitOrder) {
  EXPECT_EQ(*store_->LastPosition(), 0);
  ASSERT_TRUE(store_->Submit(TeamJob("a-1", "ads", "eve")).ok());
  ASSERT_TRUE(store_->Submit(SomeJob("b-1")).ok());
  ASSERT_TRUE(Append("a-1", NoteEvent(At(1), "one")).ok());
  ASSERT_TRUE(Append("b-1", NoteEvent(At(2), "two")).ok());
  const std::vector<StoredEvent> events = *store_->ReadAllEvents(0, 100);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].job, "a-1");
  EXPECT_EQ(events[0].team, "ads");
  EXPECT_EQ(events[0].event.type, "submitted");
  EXPECT_EQ(events[1].job, "b-1");
  EXPECT_EQ(events[2].job, "a-1");
  EXPECT_EQ(events[2].event.seq, 2);
  EXPECT_EQ(GetStringOr(events[3].event.body, "text", ""), "two");
  EXPECT_EQ(events[3].position, *store_->LastPosition());
  const std::vector<StoredEvent> rest = *store_->ReadAllEvents(events[1].position, 1);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].position, events[2].position);
}

TEST_P(StorePages, PositionsOfRemovedJobsAreNotGivenAgain) {
  ASSERT_TRUE(store_->Submit(TeamJob("a-1", "ads", "eve", {{"p", "x"}})).ok());
  ASSERT_TRUE(store_->Submit(TeamJob("b-1", "ads", "eve", {{"p", "x"}})).ok());
  Finish("b-1", JobState::kFailed);
  const int64_t before = *store_->LastPosition();
  ASSERT_TRUE(store_->Remove("b-1").ok());
  EXPECT_EQ(store_->ReadAllEvents(0, 100)->size(), 1u);
  EXPECT_THAT(Ids(store_->ListPage({.labels = {{"p", "x"}}}, "", 10)), ElementsAre("a-1"));
  ASSERT_TRUE(store_->Submit(SomeJob("b-1")).ok());
  EXPECT_GT(*store_->LastPosition(), before);
  EXPECT_EQ(store_->ReadAllEvents(before, 100)->size(), 1u);
}

// A reader that always asks for what comes after the last position it has seen misses no event.
TEST_P(StorePages, AFollowerMissesNoEventOfManyWriters) {
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  for (int i = 0; i < kThreads; ++i)
    ASSERT_TRUE(store_->Submit(SomeJob("j-" + std::to_string(i))).ok());
  const std::unique_ptr<Store> other = Open();
  std::vector<std::thread> writers;
  for (int i = 0; i < kThreads; ++i) {
    writers.emplace_back([&, i] {
      Store* const store = i % 2 == 0 ? store_.get() : other.get();
      for (int k = 0; k < kEach; ++k) {
        const Event note = NoteEvent(At(k), "n");
        EXPECT_TRUE(store->Append("j-" + std::to_string(i), {&note, 1}, Durability::kSynced).ok());
      }
    });
  }
  int64_t after = 0;
  size_t seen = 0;
  while (seen < kThreads * (1 + kEach)) {
    const std::vector<StoredEvent> events = store_->ReadAllEvents(after, 7).value();
    for (const StoredEvent& one : events) {
      EXPECT_GT(one.position, after);
      after = one.position;
    }
    seen += events.size();
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(seen, size_t{kThreads * (1 + kEach)});
  EXPECT_TRUE(store_->ReadAllEvents(after, 1)->empty());
}

TEST_P(StorePages, ThreadsThatWriteTogetherAllGetTheirOwnAnswer) {
  ASSERT_TRUE(store_->Submit(SomeJob("taken")).ok());
  std::atomic<int> stored{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) {
        const std::string id = "j-" + std::to_string(i) + "-" + std::to_string(k);
        if (store_->Submit(SomeJob(id)).ok()) ++stored;
        if (store_->Submit(SomeJob("taken")).code() == Code::kAlreadyExists) ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stored, 80);
  EXPECT_EQ(refused, 80);
  EXPECT_EQ(store_->ListJobs({})->size(), 81u);
  EXPECT_LE(store_->counters().synced_commits, 81u);
}

TEST_P(StorePages, RecordsCompareAndSet) {
  Records& records = store_->records();
  EXPECT_EQ(records.Get("user", "eve").status().code(), Code::kNotFound);
  const int64_t first = *records.Put("user", "eve", {{"role", "member"}}, kAbsent, At(1));
  EXPECT_EQ(records.Put("user", "eve", {}, kAbsent, At(1)).status().code(), Code::kAlreadyExists);
  const int64_t second = *records.Put("user", "eve", {{"role", "viewer"}}, first, At(2));
  EXPECT_GT(second, first);
  EXPECT_EQ(records.Put("user", "eve", {}, first, At(3)).status().code(), Code::kAborted);
  EXPECT_EQ(records.Put("user", "bob", {}, first, At(3)).status().code(), Code::kNotFound);
  const Record eve = *records.Get("user", "eve");
  EXPECT_EQ(ToText(eve.body), R"({"role":"viewer"})");
  EXPECT_EQ(eve.version, second);
  EXPECT_EQ(eve.changed, At(2));
  EXPECT_EQ(records.Delete("user", "eve", first, At(4)).code(), Code::kAborted);
  ASSERT_TRUE(records.Delete("user", "eve", second, At(4)).ok());
  EXPECT_EQ(records.Delete("user", "eve", kAnyVersion, At(4)).code(), Code::kNotFound);
  // A record that was deleted and made again has another version.
  EXPECT_GT(*records.Put("user", "eve", {}, kAbsent, At(5)), second);
}

TEST_P(StorePages, ChangesOfRecordsHappenTogetherOrNotAtAll) {
  Records& records = store_->records();
  const std::vector<RecordChange> changes = {
      {"token", "t1", json::object{{"user", "eve"}}, kAbsent},
      {"user", "eve", json::object{}, 77},
  };
  EXPECT_EQ(records.Apply(changes, At(1)).status().code(), Code::kNotFound);
  EXPECT_EQ(records.Get("token", "t1").status().code(), Code::kNotFound);
}

TEST_P(StorePages, RecordsAreListedByPrefix) {
  Records& records = store_->records();
  for (const char* key : {"b/1", "a/2", "a/1", "a/3", "a%", "aä"})
    ASSERT_TRUE(records.Put("x", key, {{"k", key}}, kAbsent, At(1)).ok());
  ASSERT_TRUE(records.Put("y", "a/9", {}, kAbsent, At(1)).ok());
  const RecordPage page = *records.List("x", "a/", "", 2);
  ASSERT_EQ(page.records.size(), 2u);
  EXPECT_EQ(page.records[0].key, "a/1");
  EXPECT_EQ(page.records[1].key, "a/2");
  const RecordPage rest = *records.List("x", "a/", page.next, 2);
  ASSERT_EQ(rest.records.size(), 1u);
  EXPECT_EQ(rest.records[0].key, "a/3");
  EXPECT_EQ(rest.next, "");
  EXPECT_EQ(records.List("x", "", "", 100)->records.size(), 6u);
  EXPECT_EQ(records.List("x", "a%", "", 100)->records.size(), 1u);
  EXPECT_EQ(records.List("x", "a\xc3\xa4", "", 100)->records.size(), 1u);
}

TEST_P(StorePages, RecordsAboveTheLimitsAreRefused) {
  Records& records = store_->records();
  const auto put = [&](const std::string& kind, const std::string& key, const std::string& text) {
    return records.Put(kind, key, {{"text", text}}, kAnyVersion, At(1)).status().code();
  };
  EXPECT_EQ(put("", "k", ""), Code::kInvalidArgument);
  EXPECT_EQ(put("k", std::string(513, 'k'), ""), Code::kInvalidArgument);
  EXPECT_EQ(put("k", "caf\xe9", ""), Code::kInvalidArgument);
  EXPECT_EQ(put("k", "k", "caf\xe9"), Code::kInvalidArgument);
  EXPECT_EQ(put("k", std::string("a\0b", 3), ""), Code::kInvalidArgument);
  EXPECT_EQ(put("k", "k", std::string(kMaxRecordBody, 'x')), Code::kInvalidArgument);
  EXPECT_EQ(put("k", "k", std::string(kMaxRecordBody / 2, 'x')), Code::kOk);
  EXPECT_EQ(put("k", "k", std::string("a\0b", 3)), Code::kOk);
  EXPECT_EQ(GetStringOr(records.Get("k", "k")->body, "text", ""), std::string("a\0b", 3));
}

TEST_P(StorePages, OldRecordsAreDeletedByTheirLastChange) {
  Records& records = store_->records();
  ASSERT_TRUE(records.Put("key", "a", {}, kAbsent, At(1)).ok());
  ASSERT_TRUE(records.Put("key", "b", {}, kAbsent, At(9)).ok());
  ASSERT_TRUE(records.Put("other", "a", {}, kAbsent, At(1)).ok());
  EXPECT_EQ(*records.DeleteOlder("key", At(5)), 1);
  EXPECT_EQ(*records.DeleteOlder("key", At(5)), 0);
  EXPECT_EQ(records.Get("key", "a").status().code(), Code::kNotFound);
  EXPECT_TRUE(records.Get("key", "b").ok());
  EXPECT_TRUE(records.Get("other", "a").ok());
}

TEST_P(StorePages, TheAuditLogIsReadInPages) {
  Audit& audit = store_->audit();
  std::vector<AuditEntry> entries;
  for (int i = 0; i < 6; ++i) {
    entries.push_back({0,
                       At(i),
                       i % 2 == 0 ? "eve" : "bob",
                       "ads",
                       i < 3 ? "job.stop" : "jobless",
                       "j-" + std::to_string(i),
                       {{"i", i}}});
  }
  ASSERT_TRUE(audit.Append(entries).ok());
  const AuditPage page = *audit.Read({}, "", 4);
  ASSERT_EQ(page.entries.size(), 4u);
  EXPECT_EQ(page.entries[0].object, "j-5");
  EXPECT_EQ(page.entries[0].time, At(5));
  EXPECT_EQ(GetIntOr(page.entries[0].detail, "i", 0), 5);
  const AuditPage rest = *audit.Read({}, page.next, 4);
  ASSERT_EQ(rest.entries.size(), 2u);
  EXPECT_EQ(rest.entries[1].object, "j-0");
  EXPECT_EQ(rest.next, "");
  EXPECT_EQ(audit.Read({.actor = "eve"}, "", 10)->entries.size(), 3u);
  EXPECT_EQ(audit.Read({.action = "job"}, "", 10)->entries.size(), 3u);
  EXPECT_EQ(audit.Read({.action = "job.stop"}, "", 10)->entries.size(), 3u);
  EXPECT_EQ(audit.Read({.actor = "eve", .object = "j-1"}, "", 10)->entries.size(), 0u);
  EXPECT_EQ(audit.Read({.since = At(2), .until = At(4)}, "", 10)->entries.size(), 2u);
  EXPECT_EQ(audit.Read({}, "x-1", 10).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(*audit.Trim(At(3)), 3);
  EXPECT_EQ(audit.Read({}, "", 10)->entries.size(), 3u);
}

TEST_P(StorePages, ABackupIsAWholeStore) {
  ASSERT_TRUE(store_->Submit(TeamJob("a-1", "ads", "eve")).ok());
  ASSERT_TRUE(store_->records().Put("user", "eve", {}, kAbsent, At(1)).ok());
  const std::filesystem::path copy = place_.path() / "copy" / "shoal.db";
  ASSERT_TRUE(MakeDirectories(copy.parent_path(), 0700).ok());
  const Status done = store_->Backup(copy);
  if (done.code() == Code::kUnimplemented) {
    EXPECT_THAT(done.message(), HasSubstr("pg_dump"));
    return;
  }
  ASSERT_TRUE(done.ok()) << done.ToString();
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(copy).permissions()), 0600u);
  ASSERT_TRUE(store_->Submit(SomeJob("later")).ok());
  const auto restored = OpenStore("sqlite:" + copy.string());
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ((*restored)->GetJob("a-1")->user, "eve");
  EXPECT_TRUE((*restored)->records().Get("user", "eve").ok());
  EXPECT_EQ((*restored)->ListJobs({})->size(), 1u);
  EXPECT_EQ(store_->Backup(copy).code(), Code::kAlreadyExists);
}

INSTANTIATE_TEST_SUITE_P(Stores, StorePages, testing::ValuesIn(StoreKinds()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(OpenStoreTest, UnknownUrlsAreRefusedWithoutTheirPasswords) {
  for (const std::string url : {"", "sqlite:", "mysql://eve:pass-word@host/db", "/var/lib/shoal",
                                "postgres:eve:pass-word@host", "http://host/?password=pass-word"}) {
    const Status refused = OpenStore(url).status();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << url;
    EXPECT_THAT(refused.message(), HasSubstr("expected sqlite:PATH or postgres://"));
    EXPECT_THAT(refused.message(), testing::Not(HasSubstr("pass-word"))) << refused.message();
  }
}

TEST(OpenStoreTest, PrintedUrlsHaveNoPassword) {
  EXPECT_EQ(PrintableStoreUrl("postgres://eve:p%40ss@db:5433/shoal?password=x"),
            "postgres://db:5433/shoal");
  EXPECT_EQ(PrintableStoreUrl("postgres://eve:p@ss@db/shoal"), "postgres://db/shoal");
  EXPECT_EQ(PrintableStoreUrl("postgres://eve:p/s@db/shoal?x=1"), "postgres://db/shoal");
  EXPECT_EQ(PrintableStoreUrl("postgres://eve:p?s@db/shoal"), "postgres://…");
  EXPECT_EQ(PrintableStoreUrl("postgres:///shoal?host=/tmp"), "postgres:///shoal");
  EXPECT_EQ(PrintableStoreUrl("sqlite:/var/lib/shoal.db"), "sqlite:/var/lib/shoal.db");
}

}  // namespace
}  // namespace shoal::controller
