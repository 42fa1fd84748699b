// Behaviour specific to SQLite: damaged, locked, full and foreign files.

#include "controller/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <latch>
#include <thread>
#include <vector>

#include "base/fault_injection.h"
#include "base/file.h"
#include "controller/store/sqlite_connection.h"

namespace shoal::controller {
namespace {

using testing::HasSubstr;

class SqliteStoreTest : public testing::Test {
 protected:
  SqliteStoreTest() : place_(std::move(*TempDir::Create())), path_(place_.path() / "shoal.db") {}
  ~SqliteStoreTest() override { EXPECT_TRUE(SetFaults("").ok()); }
  TempDir place_;
  std::filesystem::path path_;
};

TEST_F(SqliteStoreTest, GarbageIsToldApart) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(5000, 'x')).ok());
  const auto store = OpenSqliteStore(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kDataLoss);
  EXPECT_THAT(store.status().message(), HasSubstr("damaged or not a database; move it away"));
  EXPECT_THAT(store.status().message(), HasSubstr(path_.string()));
}

// A user would then move the file away with all its jobs.
TEST_F(SqliteStoreTest, AReadThatFailedIsNotTakenForDamage) {
  ASSERT_TRUE((*OpenSqliteStore(path_))->Submit({"a", "a", "local", {{"a", "b"}}, {}, {}}).ok());
  ASSERT_TRUE(SetFaults("store.read=EIO@1").ok());
  const auto store = OpenSqliteStore(path_, {.disk_patience = Duration(0)});
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.status().message(), HasSubstr("reading or writing failed (disk I/O error)"));
  ASSERT_TRUE(SetFaults("store.read=EIO@1").ok());
  const auto later = OpenSqliteStore(path_);
  ASSERT_TRUE(later.ok()) << "a disk that fails for a moment is tried again: "
                          << later.status().message();
  EXPECT_EQ((*later)->ListJobs({}).value().size(), 1u);
}

TEST_F(SqliteStoreTest, NewerVersionIsRefused) {
  {
    auto db = SqliteConnection::Open(path_, 100);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(db->Execute("PRAGMA user_version = 99").ok());
  }
  const auto store = OpenSqliteStore(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.status().message(), HasSubstr("version 99"));
}

TEST_F(SqliteStoreTest, ARecordThatCannotBeReadHidesNoOther) {
  for (const char* id : {"good", "bad"})
    ASSERT_TRUE((*OpenSqliteStore(path_))->Submit({id, id, "local", {{"a", "b"}}, {}, {}}).ok());
  {
    // As stored by an earlier version: a byte that is not UTF-8.
    auto db = SqliteConnection::Open(path_, 1);
    ASSERT_TRUE(db->Execute("UPDATE jobs SET job = CAST(X'7b2261223a22e9227d' AS TEXT), name = "
                            "CAST(X'e9' AS TEXT) WHERE id = 'bad'")
                    .ok());
    ASSERT_TRUE(db->Execute("UPDATE events SET body = CAST(X'e9' AS TEXT) WHERE job = 'bad'").ok());
    ASSERT_TRUE(
        db->Execute("INSERT INTO tasks VALUES ('bad', 'worker', 0, 1, CAST(X'e9' AS TEXT))").ok());
  }
  auto store = std::move(*OpenSqliteStore(path_));
  const auto jobs = store->ListJobs({.limit = 10});
  ASSERT_TRUE(jobs.ok()) << jobs.status().message();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ(jobs->at(0).id, "bad");
  EXPECT_THAT(jobs->at(0).damage, HasSubstr("the column 'job' of shoal.db: bad JSON near byte"));
  EXPECT_EQ(jobs->at(0).name, "\xef\xbf\xbd");
  EXPECT_EQ(jobs->at(1).damage, "");
  EXPECT_EQ(store->FindJob("ba")->id, "bad");
  EXPECT_EQ(store->ReadEvents("bad", 0, 10)->size(), 1u);
  EXPECT_TRUE(store->ListTasks("bad")->empty());
  // It can be ended and removed like any other.
  const Event ended = EndedEvent({}, JobState::kFailed, "", {});
  ASSERT_TRUE(store->Append("bad", {&ended, 1}, Durability::kSynced).ok());
  ASSERT_TRUE(store->Remove("bad").ok());
  EXPECT_EQ(store->ListJobs({.limit = 10})->size(), 1u);
}

TEST_F(SqliteStoreTest, FilesAreTheUsersAloneUnderEveryUmask) {
  const auto mode = [](const std::filesystem::path& file) {
    return static_cast<unsigned>(std::filesystem::status(file).permissions());
  };
  for (const mode_t mask : {mode_t{0}, mode_t{0777}}) {
    const std::filesystem::path path = place_.path() / std::to_string(mask) / "shoal.db";
    ASSERT_TRUE(MakeDirectories(path.parent_path(), 0755).ok());
    const mode_t before = ::umask(mask);
    auto store = OpenSqliteStore(path);
    ::umask(before);
    ASSERT_TRUE(store.ok()) << store.status().message();
    ASSERT_TRUE((*store)->Submit({"a", "a", "local", {}, {}, {}}).ok());
    for (const auto& file : std::filesystem::directory_iterator(path.parent_path()))
      EXPECT_EQ(mode(file.path()), 0600u) << file.path();
  }
}

TEST_F(SqliteStoreTest, FilesThatLetOthersInAreClosed) {
  ASSERT_TRUE((*OpenSqliteStore(path_))->Submit({"a", "a", "local", {}, {}, {}}).ok());
  for (const auto& file : std::filesystem::directory_iterator(place_.path()))
    ASSERT_EQ(::chmod(file.path().c_str(), 0644), 0);
  ASSERT_TRUE(OpenSqliteStore(path_).ok());
  for (const auto& file : std::filesystem::directory_iterator(place_.path()))
    EXPECT_EQ(static_cast<unsigned>(file.status().permissions()), 0600u) << file.path();
}

TEST_F(SqliteStoreTest, ADirectoryThatEverybodyMayWriteIsRefused) {
  ASSERT_EQ(::chmod(place_.path().c_str(), 0777), 0);
  const auto store = OpenSqliteStore(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kPermissionDenied);
  EXPECT_THAT(store.status().message(), HasSubstr("chmod o-w"));
  ASSERT_EQ(::chmod(place_.path().c_str(), 0700), 0);
}

TEST_F(SqliteStoreTest, LockedForTooLongIsSaid) {
  auto store = OpenSqliteStore(path_, {.busy_timeout_ms = 1});
  ASSERT_TRUE(store.ok());
  auto other = SqliteConnection::Open(path_, 1);
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(other->Execute("BEGIN IMMEDIATE").ok());
  const Status status = (*store)->Submit({"a", "a", "local", {}, {}, {}});
  EXPECT_THAT(status.message(), HasSubstr("locked for too long"));
  ASSERT_TRUE(other->Execute("ROLLBACK").ok());
  EXPECT_TRUE((*store)->Submit({"a", "a", "local", {}, {}, {}}).ok());
}

// The format of file header bytes 18 and 19: 2 with a log, 1 without (sqlite.org/fileformat.html).
TEST_F(SqliteStoreTest, WhatMachinesShareHasNoLog) {
  const auto format = [&] { return std::string(*ReadFile(path_, size_t{1} << 20), 18, 2); };
  ASSERT_TRUE((*OpenSqliteStore(path_))->Submit({"a", "a", "local", {}, {}, {}}).ok());
  EXPECT_EQ(format(), "\x02\x02");
  auto store = OpenSqliteStore(path_, {.several_machines = true});  // of an earlier shoal
  ASSERT_TRUE(store.ok()) << store.status().message();
  ASSERT_TRUE((*store)->Submit({"b", "b", "local", {}, {}, {}}).ok());
  EXPECT_EQ(format(), "\x01\x01");
  auto other = OpenSqliteStore(path_, {.several_machines = true});
  ASSERT_TRUE((*other)->Submit({"c", "c", "local", {}, {}, {}}).ok());
  EXPECT_EQ((*store)->ListJobs({.limit = 10})->size(), 3u);
}

TEST_F(SqliteStoreTest, ManyWhoMakeItAtOnceAllGetIt) {
  for (int round = 0; round < 60; ++round) {
    const std::filesystem::path path = path_.parent_path() / std::to_string(round) / "shoal.db";
    std::latch ready(4);
    std::vector<std::thread> openers;
    for (int i = 0; i < 4; ++i) {
      openers.emplace_back([&] {
        ready.arrive_and_wait();
        const auto store = OpenSqliteStore(path);
        EXPECT_TRUE(store.ok()) << store.status().ToString();
      });
    }
    for (std::thread& opener : openers) opener.join();
  }
}

TEST_F(SqliteStoreTest, FullDiskLeavesTheOldState) {
  auto store = OpenSqliteStore(path_);
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE((*store)->Submit({"a", "a", "local", {}, {}, {}}).ok());
  ASSERT_TRUE(SetFaults("store.commit=ENOSPC@1").ok());
  EXPECT_FALSE((*store)->Submit({"b", "b", "local", {}, {}, {}}).ok());
  ASSERT_TRUE(SetFaults("").ok());
  EXPECT_EQ((*store)->GetJob("b").status().code(), Code::kNotFound);
  EXPECT_TRUE((*store)->GetJob("a").ok());
  EXPECT_TRUE((*store)->Submit({"b", "b", "local", {}, {}, {}}).ok());
}

TEST_F(SqliteStoreTest, MemoryOfTheMessages) {
  EXPECT_THAT(SqliteStatus(nullptr, SQLITE_FULL).message(), HasSubstr("the disk is full"));
  EXPECT_EQ(SqliteStatus(nullptr, SQLITE_READONLY).code(), Code::kPermissionDenied);
}

TEST_F(SqliteStoreTest, PlaceThatIsAFileIsSaid) {
  ASSERT_TRUE(WriteFileAtomically(place_.path() / "file", "x").ok());
  const auto store = OpenSqliteStore(place_.path() / "file" / "shoal.db");
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.status().message(), HasSubstr((place_.path() / "file").string()));
}

}  // namespace
}  // namespace shoal::controller
