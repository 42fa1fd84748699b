// A store that an earlier release made: this one opens it, and the earlier one goes on with it
// until a lease is taken.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "controller/store/sqlite_check.h"
#include "controller/store/sqlite_connection.h"
#include "controller/store/sqlite_store.h"

namespace shoal::controller {
namespace {

using std::chrono::seconds;

class SqliteMigrationTest : public testing::Test {
 protected:
  SqliteMigrationTest() : place_(std::move(*TempDir::Create())), path_(place_.path() / "shoal.db") {
    std::filesystem::copy_file(
        std::filesystem::path(SHOAL_SOURCE_DIR) / "tests/golden/store/version-1.db", path_);
  }
  std::unique_ptr<Store> Open() {
    Result<std::unique_ptr<Store>> store = OpenSqliteStore(path_);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return store.ok() ? std::move(*store) : nullptr;
  }
  int64_t Number(const std::string& sql) {
    SqliteConnection db = std::move(*SqliteConnection::Open(path_, 1000));
    Statement select = std::move(*db.Prepare(sql));
    EXPECT_TRUE(select.Step().ok());
    return select.Int(0);
  }

  TempDir place_;
  std::filesystem::path path_;
};

TEST_F(SqliteMigrationTest, JobsOfTheEarlierReleaseAreAllThere) {
  const std::unique_ptr<Store> store = Open();
  ASSERT_NE(store, nullptr);
  const JobPage page = *store->ListPage({.states = {JobState::kSucceeded}}, "", 10);
  ASSERT_EQ(page.jobs.size(), 2u);
  EXPECT_EQ(page.jobs[0].name, "kept");
  EXPECT_EQ(page.jobs[1].name, "hello");
  EXPECT_EQ(page.jobs[1].team, "");
  const JobRecord failed = *store->FindJob("bad-");
  EXPECT_EQ(failed.state, JobState::kFailed);
  EXPECT_EQ(failed.damage, "");
  EXPECT_EQ(store->ListTasks(failed.id)->size(), 2u);
  EXPECT_EQ(store->ListExpired(WallTime(std::chrono::hours(24 * 365 * 100)))->size(), 1u);
}

TEST_F(SqliteMigrationTest, ItsEventsGetPositionsInTheirOrder) {
  const int64_t stored = Number("SELECT count(*) FROM events");
  const std::unique_ptr<Store> store = Open();
  ASSERT_NE(store, nullptr);
  const std::vector<StoredEvent> events = *store->ReadAllEvents(0, 1000);
  ASSERT_EQ(static_cast<int64_t>(events.size()), stored);
  std::map<std::string, int64_t> last;
  for (const StoredEvent& one : events) {
    EXPECT_EQ(one.event.seq, last[one.job] + 1) << one.job;
    last[one.job] = one.event.seq;
  }
  EXPECT_EQ(last.size(), 3u);
  EXPECT_THAT(events.front().job, testing::StartsWith("hello-"));
  EXPECT_THAT(events.back().job, testing::StartsWith("kept-"));
  // Opened again it is not migrated again.
  EXPECT_EQ(Open()->ReadAllEvents(0, 1000)->size(), events.size());
  EXPECT_EQ(*Open()->LastPosition(), events.back().position);
  EXPECT_TRUE(FindStoreDamage(path_)->empty());
}

// The statements are those of the earlier release, which does not know the new columns and tables.
TEST_F(SqliteMigrationTest, WhatTheEarlierReleaseWritesLaterIsCompleteToo) {
  const std::string id = Open()->FindJob("bad-")->id;
  const int64_t before = *Open()->LastPosition();
  ASSERT_EQ(Number("PRAGMA user_version"), 1);
  {
    SqliteConnection db = std::move(*SqliteConnection::Open(path_, 1000));
    const std::string body =
        R"({"name":"n","engine":"local","job":{},"owner":{"pid":1,"start_ticks":1,"boot_id":"b"}})";
    const std::string sql =
        "BEGIN IMMEDIATE; INSERT INTO jobs (id, name, state, ended_flag, reason, engine, job, "
        "result, owner_pid, owner_start, owner_boot, submitted, started, ended, last_seq) VALUES "
        "('new-1', 'n', 'pending', 0, '', 'local', '{}', '{}', 1, 1, 'b', 7, 0, 0, 0);"
        "INSERT INTO events VALUES ('new-1', 1, 7, 'submitted', '" +
        body +
        "'); UPDATE jobs SET state = 'pending', ended_flag = 0, reason = '', result = '{}', "
        "owner_pid = 1, owner_start = 1, owner_boot = 'b', started = 0, ended = 0, last_seq = 1 "
        "WHERE id = 'new-1'; COMMIT; "
        "BEGIN IMMEDIATE; DELETE FROM events WHERE job = '" +
        id + "'; DELETE FROM tasks WHERE job = '" + id + "'; DELETE FROM jobs WHERE id = '" + id +
        "'; COMMIT";
    const Status written = db.Execute(sql.c_str());
    ASSERT_TRUE(written.ok()) << written.ToString();
  }
  const std::unique_ptr<Store> store = Open();
  const std::vector<StoredEvent> after = *store->ReadAllEvents(before, 10);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].job, "new-1");
  EXPECT_EQ(after[0].event.type, "submitted");
  EXPECT_EQ(store->GetJob(id).status().code(), Code::kNotFound);
  EXPECT_EQ(store->ListPage({}, "", 10)->jobs.size(), 3u);
  // Nothing is left of the removed job.
  EXPECT_EQ(Number("SELECT count(*) FROM positions"), Number("SELECT count(*) FROM events"));
}

TEST_F(SqliteMigrationTest, OnceALeaseIsTakenTheEarlierReleaseRefusesTheFile) {
  ASSERT_TRUE(Open()->AcquireLease(kLeaderLease, "one", seconds(5))->acquired);
  EXPECT_EQ(Number("PRAGMA user_version"), 2);
  ASSERT_NE(Open(), nullptr);
  EXPECT_EQ(Open()->ListJobs({})->size(), 3u);
}

}  // namespace
}  // namespace shoal::controller
