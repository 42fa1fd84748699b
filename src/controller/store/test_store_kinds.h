// The implementations of Store that the contract tests run over.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "controller/store/postgres/postgres_store.h"
#include "controller/store/postgres/test_postgres.h"
#include "controller/store/sqlite_store.h"
#include "controller/store/store.h"

namespace shoal::controller {

// Opens the same store several times, as several processes would. `clock` is that of leases; null:
// the store's own.
struct StoreKind {
  const char* name;
  Result<std::unique_ptr<Store>> (*open)(const std::filesystem::path& place, const Clock* clock);
  bool (*available)();
};

// One server for all tests of a process, with a database for each place.
inline TestPostgres* PostgresOfTests() {
  static const Result<std::unique_ptr<TestPostgres>> server = TestPostgres::Start();
  EXPECT_TRUE(server.ok()) << server.status().ToString();
  return server.ok() ? server->get() : nullptr;
}

inline std::vector<StoreKind> StoreKinds() {
  return {
      {"sqlite",
       [](const std::filesystem::path& place, const Clock* clock) {
         SqliteOptions options;
         if (clock != nullptr) options.clock = clock;
         return OpenSqliteStore(place / "shoal.db", options);
       },
       [] { return true; }},
      {"postgres",
       [](const std::filesystem::path& place,
          const Clock* clock) -> Result<std::unique_ptr<Store>> {
         TestPostgres* const server = PostgresOfTests();
         if (server == nullptr) return Internal("PostgreSQL does not start");
         TRY_ASSIGN(const std::string url, server->Database(place.filename().string()));
         return OpenPostgresStore(url, {.lease_clock = clock});
       },
       [] { return !TestPostgres::Programs().empty(); }},
  };
}

inline WallTime At(int64_t second) { return WallTime(std::chrono::seconds(second)); }

inline NewJob SomeJob(const std::string& id) {
  return {id, "name-of-" + id, "local", {{"name", "x"}}, {17, 42, "boot", 4026531836}, At(100)};
}

// A fixture with one open store.
class StoreTest : public testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override {
    if (!GetParam().available())
      GTEST_SKIP() << "PostgreSQL is not installed (Debian: postgresql-15)";
    store_ = Open();
    ASSERT_NE(store_, nullptr);
  }
  std::unique_ptr<Store> Open(const Clock* clock = nullptr) {
    Result<std::unique_ptr<Store>> store = GetParam().open(place_.path(), clock);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return store.ok() ? std::move(*store) : nullptr;
  }
  Status Append(const std::string& id, const Event& event) {
    return store_->Append(id, {&event, 1}, Durability::kWritten);
  }
  // Moves the job through its states to the end.
  void Finish(const std::string& id, JobState state) {
    const std::vector<Event> events = {
        StateEvent(At(101), JobState::kAdmitted, ""), StateEvent(At(102), JobState::kStarting, ""),
        StateEvent(At(103), JobState::kRunning, ""), StateEvent(At(104), JobState::kFinishing, ""),
        EndedEvent(At(105), state, "because", {{"loss", 0.5}})};
    ASSERT_TRUE(store_->Append(id, events, Durability::kSynced).ok());
  }

  TempDir place_ = std::move(*TempDir::Create());
  std::unique_ptr<Store> store_;
};

}  // namespace shoal::controller
