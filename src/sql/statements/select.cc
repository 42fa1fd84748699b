// select … as t;
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "job/text/units.h"
#include "sql/query/duckdb_library.h"
#include "sql/query/query_tables.h"
#include "sql/query/run_query.h"
#include "sql/statements/statements.h"

namespace shoal::sql {
namespace {

constexpr uint64_t kSpillBytes = uint64_t{64} << 30;
constexpr int64_t kDefaultTimeMs = 3'600'000;
constexpr uint64_t kLeastMemory = uint64_t{64} << 20;

uint64_t HalfOfMemory() {
  const auto pages = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<uint64_t>(std::max(1L, ::sysconf(_SC_PAGE_SIZE)));
  return std::max(kLeastMemory, pages * page / 2);
}

struct Limits {
  uint64_t memory_bytes = 0;
  Duration time{};
};

// The lesser one; a cap of 0 is none.
template <typename T>
T AtMost(T value, T cap) {
  return cap == T{} ? value : std::min(value, cap);
}

// The variables query.memory and query.time.
Result<Limits> ReadLimits(const Variables& variables) {
  Limits limits{HalfOfMemory(), std::chrono::milliseconds(kDefaultTimeMs)};
  if (const auto set = variables.values().find("query.memory"); set != variables.values().end()) {
    const auto bytes = job::ParseSize(set->second);
    if (!bytes || static_cast<uint64_t>(*bytes) < kLeastMemory)
      return InvalidArgument("the variable query.memory is " + set->second +
                             ", expected a size of at least 64Mi, such as 4Gi");
    limits.memory_bytes = static_cast<uint64_t>(*bytes);
  }
  if (const auto set = variables.values().find("query.time"); set != variables.values().end()) {
    const auto time = job::ParseDurationMs(set->second);
    if (!time || *time <= 0)
      return InvalidArgument("the variable query.time is " + set->second +
                             ", expected a time such as 30s or 2h");
    limits.time = std::chrono::milliseconds(*time);
  }
  return limits;
}

Result<Limits> LimitsOf(const Variables& variables, const QueryCaps& caps) {
  TRY_ASSIGN(Limits limits, ReadLimits(variables));
  limits.memory_bytes = AtMost(limits.memory_bytes, caps.memory_bytes);
  limits.time = AtMost(limits.time, caps.time);
  return limits;
}

// The place in the script of a byte of the query, which has a byte for each of the script unless
// variables were replaced.
Span PlaceOf(const SelectStatement& select, const Word& query, int64_t position) {
  const size_t begin = select.query.span.begin;
  const bool same = query.text.size() == select.query.text.size();
  if (!same || position < 0 || static_cast<size_t>(position) >= query.text.size())
    return {begin, std::min(select.query.span.end, begin + std::string_view("select").size())};
  const size_t at = begin + static_cast<size_t>(position);
  return {at, at + 1};
}

}  // namespace

Result<StatementResult> Execute(const ScriptText& script, const SelectStatement& select,
                                SessionState* state) {
  TRY_ASSIGN(const Word query, state->variables.Expand(script, select.query));
  TRY_ASSIGN(const Word name, state->variables.Expand(script, select.table));
  const Span whole = PlaceOf(select, query, -1);
  const QueryCaps caps = state->host->caps();
  const Result<Limits> limits = LimitsOf(state->variables, caps);
  if (!limits.ok()) return script.Locate(whole, limits.status());
  TRY_ASSIGN(auto directory, SessionState::MakeDirectory());
  const auto stopped = [host = state->host] { return host->Stopped(); };
  QueryRequest request;
  const std::string program = state->host->Program();
  request.library = FindDuckDbLibrary(program);
  request.directory = directory->path().string();
  request.query = query.text;
  request.memory_bytes = limits->memory_bytes;
  request.spill_bytes = AtMost(kSpillBytes, caps.spill_bytes);
  request.threads =
      AtMost<uint64_t>(std::max(1U, std::thread::hardware_concurrency()), caps.threads);
  AddFunctions(state->functions, &request);
  std::vector<std::shared_ptr<const TempDir>> copies;  // of tables, until the query has ended
  TRY(script.Locate(whole, AddTables(state->tables, stopped, &request, &copies)));
  const QueryEnd end = RunQuery(request, {program, limits->time, stopped});
  if (!end.status.ok()) return script.Locate(PlaceOf(select, query, end.position), end.status);
  Result<Table> table =
      OpenSessionFile(data::RecordFormat::kParquet, std::move(directory), kResultFile);
  if (!table.ok()) return script.Locate(whole, table.status());
  table->special = end.special;
  table->origin = "select";
  TRY(state->PutTable(script, name, std::move(*table)));
  return StatementResult{name.text, std::nullopt, false};
}

}  // namespace shoal::sql
