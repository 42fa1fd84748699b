// The store under load: submissions of many threads, and pages of 100,000 jobs beside SQLite's own
// query of the same.
#include <benchmark/benchmark.h>

#include <sqlite3.h>

#include <atomic>
#include <thread>

#include "base/file.h"
#include "controller/store/sqlite_store.h"

namespace shoal::controller {
namespace {

constexpr int kJobs = 100'000;

NewJob Job(const std::string& id, int team) {
  NewJob job{id, "job-" + id, "local", {}, {}, {}};
  job.team = "team-" + std::to_string(team);
  job.user = "user-" + std::to_string(team);
  job.job["command"] = std::string(1500, 'x');  // the size of a small job file's record
  return job;
}

// Durable submissions of some threads together; the argument is their number.
void Submissions(benchmark::State& state) {
  const TempDir place = std::move(*TempDir::Create());
  const auto store = std::move(*OpenSqliteStore(place.path() / "shoal.db"));
  const int threads = static_cast<int>(state.range(0));
  std::atomic<int> next{0};
  constexpr int kEach = 100;
  for (auto _ : state) {
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        for (int k = 0; k < kEach; ++k) {
          const Status done = store->Submit(Job("j" + std::to_string(next++), 1));
          if (!done.ok()) std::abort();
        }
      });
    }
    for (std::thread& one : all) one.join();
  }
  state.SetItemsProcessed(state.iterations() * threads * kEach);
  state.counters["submissions per sync"] =
      static_cast<double>(next) / static_cast<double>(store->counters().synced_commits);
}
BENCHMARK(Submissions)->Arg(1)->Arg(4)->Arg(16)->UseRealTime()->Unit(benchmark::kMillisecond);

// 100,000 jobs of 100 teams, one in 20 of which has not ended.
const std::filesystem::path& Filled() {
  static TempDir place = std::move(*TempDir::Create());
  static const std::filesystem::path path = [] {
    const std::filesystem::path made = place.path() / "shoal.db";
    const auto store = std::move(*OpenSqliteStore(made));
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&, i] {
        for (int k = i; k < kJobs; k += 16) {
          const std::string id = "j" + std::to_string(k);
          if (!store->Submit(Job(id, k % 100)).ok()) std::abort();
          if (k % 20 == 0) continue;
          const Event ended = EndedEvent({}, JobState::kFailed, "because of something", {});
          if (!store->Append(id, {&ended, 1}, Durability::kWritten).ok()) std::abort();
        }
      });
    }
    for (std::thread& one : threads) one.join();
    return made;
  }();
  return path;
}

void Page(benchmark::State& state) {
  const auto store = std::move(*OpenSqliteStore(Filled()));
  const JobFilter filter{.states = {state.range(0) == 0 ? JobState::kFailed : JobState::kPending},
                         .teams = {state.range(0) == 0 ? "team-37" : "team-40"}};
  for (auto _ : state) {
    const Result<JobPage> page = store->ListPage(filter, "", 50);
    if (!page.ok() || page->jobs.size() != 50) std::abort();
  }
}
BENCHMARK(Page)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

// The same rows and columns by a prepared statement of SQLite.
void PageOfSqlite(benchmark::State& state) {
  sqlite3* db = nullptr;
  if (sqlite3_open(Filled().c_str(), &db) != SQLITE_OK) std::abort();
  sqlite3_stmt* select = nullptr;
  const char* const sql =
      "SELECT ord, id, name, state, reason, engine, team, user_name, labels, submitted, started, "
      "ended, last_seq FROM jobs WHERE team = ?1 AND state = ?2 ORDER BY ord DESC LIMIT 51";
  if (sqlite3_prepare_v2(db, sql, -1, &select, nullptr) != SQLITE_OK) std::abort();
  for (auto _ : state) {
    sqlite3_bind_text(select, 1, state.range(0) == 0 ? "team-37" : "team-40", -1, SQLITE_STATIC);
    sqlite3_bind_text(select, 2, state.range(0) == 0 ? "failed" : "pending", -1, SQLITE_STATIC);
    int rows = 0;
    while (sqlite3_step(select) == SQLITE_ROW) {
      for (int i = 1; i < 9; ++i) benchmark::DoNotOptimize(sqlite3_column_text(select, i));
      for (int i = 9; i < 13; ++i) benchmark::DoNotOptimize(sqlite3_column_int64(select, i));
      ++rows;
    }
    sqlite3_reset(select);
    if (rows != 51) std::abort();
  }
  sqlite3_finalize(select);
  sqlite3_close(db);
}
BENCHMARK(PageOfSqlite)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

// As before: whole jobs.
void WholeJobs(benchmark::State& state) {
  const auto store = std::move(*OpenSqliteStore(Filled()));
  for (auto _ : state) {
    const auto jobs = store->ListJobs({.limit = 50});
    if (!jobs.ok() || jobs->size() != 50) std::abort();
  }
}
BENCHMARK(WholeJobs)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shoal::controller
