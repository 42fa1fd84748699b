// Behaviour specific to PostgreSQL: lost connections, restarts, leaders stopped in a transaction.

#include "controller/store/postgres/postgres_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <set>
#include <thread>

#include "controller/store/open_store.h"
#include "controller/store/postgres/pq_library.h"
#include "controller/store/test_child.h"
#include "controller/store/test_store_kinds.h"

namespace shoal::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

class PostgresStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (TestPostgres::Programs().empty())
      GTEST_SKIP() << "PostgreSQL is not installed (Debian: postgresql-15)";
    Result<std::unique_ptr<TestPostgres>> server = TestPostgres::Start();
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(*server);
    url_ = server_->Database("shoal").value();
    store_ = Open();
    ASSERT_NE(store_, nullptr);
    ASSERT_TRUE(store_->Submit(SomeJob("a-1")).ok());
  }
  std::unique_ptr<Store> Open(const PostgresOptions& options = {}) {
    Result<std::unique_ptr<Store>> store = OpenPostgresStore(url_, options);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return store.ok() ? std::move(*store) : nullptr;
  }
  Status Note(Store* store, const std::string& text) {
    const Event note = NoteEvent(At(1), text);
    return store->Append("a-1", {&note, 1}, Durability::kSynced);
  }

  std::unique_ptr<TestPostgres> server_;
  std::string url_;
  std::unique_ptr<Store> store_;
};

TEST(PqLibraryTest, AMissingLibraryIsSaid) {
  const Status missing = OpenPq("libpq-that-is-not-there.so.5").status();
  EXPECT_EQ(missing.code(), Code::kFailedPrecondition);
  EXPECT_THAT(missing.message(), HasSubstr("install it (Debian: libpq5), or use sqlite:PATH"));
  EXPECT_THAT(OpenPq("libc.so.6").status().message(),
              HasSubstr("has no function PQconnectdbParams"));
}

TEST(PostgresUrlTest, AUrlThatCannotBeReadIsNotRepeated) {
  const Status bad = OpenPostgresStore("postgres://eve:pass%ZZword@host/db").status();
  EXPECT_EQ(bad.code(), Code::kInvalidArgument);
  EXPECT_THAT(bad.message(), Not(HasSubstr("word")));
  EXPECT_THAT(bad.message(), HasSubstr("postgres://USER@HOST:PORT/DATABASE"));
}

TEST_F(PostgresStoreTest, ADatabaseThatIsNotThereIsSaid) {
  const Status none = OpenStore(server_->Url("none")).status();
  EXPECT_EQ(none.code(), Code::kUnavailable);
  EXPECT_THAT(none.message(), HasSubstr("database \"none\" does not exist"));
  EXPECT_THAT(none.message(), Not(HasSubstr("secret-word")));
}

TEST_F(PostgresStoreTest, OtherEncodingsAndVersionsAreRefused) {
  const auto admin = std::move(*PostgresConnection::Open(server_->Url("shoal")));
  ASSERT_TRUE(admin->Execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0").ok());
  EXPECT_THAT(OpenStore(server_->Url("latin")).status().message(),
              HasSubstr("has the encoding LATIN1, expected UTF8"));
  ASSERT_TRUE(admin->Execute("UPDATE meta SET value = '99' WHERE name = 'version'").ok());
  EXPECT_THAT(OpenStore(url_).status().message(), HasSubstr("version 99 of the tables"));
}

TEST_F(PostgresStoreTest, AUserWithoutRightsIsTold) {
  const auto admin = std::move(*PostgresConnection::Open(server_->Url("postgres")));
  ASSERT_TRUE(admin->Execute("CREATE USER weak").ok());
  ASSERT_TRUE(admin->Execute("CREATE DATABASE empty").ok());
  std::string url = server_->Url("empty");
  url.replace(url.find("shoal:secret-word"), 17, "weak");
  const Status refused = OpenStore(url).status();
  EXPECT_EQ(refused.code(), Code::kPermissionDenied) << refused.ToString();
  EXPECT_THAT(refused.message(), HasSubstr("GRANT CREATE ON DATABASE"));
}

TEST_F(PostgresStoreTest, ARestartOfTheDatabaseIsSurvived) {
  std::atomic<int> told{0};
  const auto watch = store_->Watch([&] {
    ++told;
    told.notify_all();
  });
  ASSERT_TRUE(watch.ok());
  ASSERT_TRUE(Note(store_.get(), "before").ok());
  server_->Kill();
  std::thread writer([&] { EXPECT_TRUE(Note(store_.get(), "during").ok()); });
  std::thread reader([&] { EXPECT_TRUE(store_->GetJob("a-1").ok()); });
  ASSERT_TRUE(server_->Run().ok());
  writer.join();
  reader.join();
  EXPECT_EQ(store_->ReadEvents("a-1", 0, 10)->size(), 3u);
  // The watcher has connected again once it tells of a commit after the restart.
  const int before = told;
  for (int i = 0; told == before && i < 1000; ++i) {
    ASSERT_TRUE(Note(store_.get(), "after").ok());
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_GT(told, before);
}

TEST_F(PostgresStoreTest, ADatabaseThatStaysAwayIsUnavailable) {
  const std::unique_ptr<Store> hasty = Open({.patience = Duration(0)});
  server_->Kill();
  const Status write = Note(hasty.get(), "lost");
  EXPECT_EQ(write.code(), Code::kUnavailable) << write.ToString();
  EXPECT_EQ(hasty->GetJob("a-1").status().code(), Code::kUnavailable);
  const Status open = OpenStore(url_).status();
  EXPECT_EQ(open.code(), Code::kUnavailable);
  EXPECT_THAT(open.message(), HasSubstr("cannot be reached"));
  EXPECT_THAT(open.message(), Not(HasSubstr("secret-word")));
}

// Sessions are ended at any point of their transactions, again and again; every note is there once.
TEST_F(PostgresStoreTest, LostConnectionsLoseAndDoubleNoEvent) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20;
  const std::unique_ptr<Store> other = Open();
  const auto admin = std::move(*PostgresConnection::Open(server_->Url("postgres")));
  std::atomic<int> stored{0};
  std::vector<std::thread> writers;
  for (int i = 0; i < kThreads; ++i) {
    writers.emplace_back([&, i] {
      for (int k = 0; k < kEach; ++k) {
        const std::string text = std::to_string(i) + "/" + std::to_string(k);
        const Status done = Note(i % 2 == 0 ? store_.get() : other.get(), text);
        EXPECT_TRUE(done.ok()) << done.ToString();
        ++stored;
      }
    });
  }
  // After every few notes, so that there is progress however slow the machine is.
  int ended = 0;
  for (int next = 3; next < kThreads * kEach; next = stored + 3) {
    while (stored < next) std::this_thread::yield();
    ASSERT_TRUE(admin
                    ->Execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                              "datname = 'shoal' AND pid <> pg_backend_pid()")
                    .ok());
    ++ended;
  }
  for (std::thread& writer : writers) writer.join();
  std::multiset<std::string> notes;
  const std::vector<Event> events = store_->ReadEvents("a-1", 1, 1000).value();
  for (const Event& event : events) notes.insert(GetStringOr(event.body, "text", ""));
  EXPECT_EQ(notes.size(), size_t{kThreads * kEach});
  EXPECT_EQ(std::set<std::string>(notes.begin(), notes.end()).size(), notes.size());
  EXPECT_GT(ended, 2);
}

// The child stops inside a transaction, with the lock that serializes writers. The database ends
// its session, this process takes over, and the revived child changes nothing.
TEST_F(PostgresStoreTest, ALeaderStoppedInATransactionIsReplacedWithinTenSeconds) {
  TestChild child([&](int) {
    const std::unique_ptr<Store> store = Open();
    const Lease lease = store->AcquireLease(kLeaderLease, "first", seconds(5)).value_or({});
    store->SetFence(lease.fence());
    bool stopped = false;
    const Status late = store->AppendDecided(
        "a-1",
        [&](const std::vector<JobRecord>&) -> std::vector<Event> {
          if (!stopped) ::raise(SIGSTOP);
          stopped = true;
          return {NoteEvent(At(1), "of the first")};
        },
        Durability::kSynced);
    return late.code() == Code::kAborted ? 0 : 1;
  });
  ASSERT_TRUE(child.WaitUntilStopped());
  const TimePoint begin = RealClock::Get()->Now();
  Lease lease;
  while (!lease.acquired && RealClock::Get()->Now() < begin + seconds(20)) {
    lease = store_->AcquireLease(kLeaderLease, "second", seconds(5)).value_or({});
    if (!lease.acquired) std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_LT(RealClock::Get()->Now() - begin, seconds(10));
  ASSERT_TRUE(lease.acquired);
  store_->SetFence(lease.fence());
  ASSERT_TRUE(Note(store_.get(), "of the second").ok());
  child.Signal(SIGCONT);
  EXPECT_EQ(child.Wait(), 0);
  const std::vector<Event> events = store_->ReadEvents("a-1", 1, 10).value();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(GetStringOr(events[0].body, "text", ""), "of the second");
}

TEST_F(PostgresStoreTest, ManyWhoMakeTheTablesAtOnceAllGetThem) {
  const std::string url = server_->Database("fresh").value();
  std::latch ready(4);
  std::vector<std::thread> openers;
  for (int i = 0; i < 4; ++i) {
    openers.emplace_back([&] {
      ready.arrive_and_wait();
      const auto store = OpenPostgresStore(url);
      EXPECT_TRUE(store.ok()) << store.status().ToString();
    });
  }
  for (std::thread& opener : openers) opener.join();
}

}  // namespace
}  // namespace shoal::controller
