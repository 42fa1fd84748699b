#include "controller/store/sql/sql_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <variant>

#include "base/utf8.h"

namespace shoal::controller {
namespace {

// Of teams, states and labels in a filter.
constexpr size_t kMostValues = 100;
constexpr size_t kMostText = 1024;
// Pairs of team and state up to which each is a range of the index; beyond, rows are checked.
constexpr size_t kMostRanges = 64;

constexpr std::string_view kColumns =
    "jobs.ord, id, jobs.name, state, reason, engine, team, user_name, labels, submitted, started, "
    "ended, last_seq";

int64_t Micros(WallTime time) { return time.time_since_epoch().count(); }
WallTime Wall(int64_t micros) { return WallTime(std::chrono::microseconds(micros)); }

using Value = std::variant<std::string, int64_t>;

// Builds one SELECT; equal values share a parameter only if added once.
class Query {
 public:
  // The number of the parameter, as "?7".
  std::string Param(Value value) {
    values_.push_back(std::move(value));
    return "?" + std::to_string(values_.size());
  }
  void Bind(Statement* statement) const {
    for (int at = 1; const Value& value : values_)
      std::visit([&](const auto& one) { statement->Bind(at++, one); }, value);
  }

 private:
  std::vector<Value> values_;
};

// " AND column = ?3" or " AND column IN (?3, ?4)"; empty for no values.
template <typename Values>
std::string In(Query* query, std::string_view column, const Values& values) {
  if (values.empty()) return "";
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + query->Param(value);
  if (values.size() == 1) return fmt::format(" AND {} = {}", column, list);
  return fmt::format(" AND {} IN ({})", column, list);
}

std::vector<std::string> NamesOf(const std::vector<JobState>& states) {
  std::vector<std::string> names;
  for (const JobState state : states) names.emplace_back(job::NameOf(state));
  return names;
}

// A range of the index (team, state, ord) exists only for a state.
std::vector<JobState> StatesOrAll(const std::vector<JobState>& states) {
  if (!states.empty()) return states;
  std::vector<JobState> all;
  for (int at = 0; at <= static_cast<int>(JobState::kCancelled); ++at)
    all.push_back(static_cast<JobState>(at));
  return all;
}

// The few jobs that have not ended have an index.
std::string OnlyUnfinished(const std::vector<JobState>& states) {
  const bool all = std::none_of(states.begin(), states.end(), job::IsFinal);
  return all && !states.empty() ? " AND ended_flag = 0" : "";
}

// The conditions that are checked row by row.
std::string Checked(Query* query, const JobFilter& filter) {
  std::string sql;
  if (!filter.user.empty()) sql += " AND user_name = " + query->Param(filter.user);
  if (!filter.engine.empty()) sql += " AND engine = " + query->Param(filter.engine);
  if (!filter.name_prefix.empty()) {
    const std::string prefix = query->Param(filter.name_prefix);
    sql += fmt::format(" AND substr(jobs.name, 1, length({0})) = {0}", prefix);
  }
  if (filter.since != WallTime{}) sql += " AND submitted >= " + query->Param(Micros(filter.since));
  if (filter.until != WallTime{}) sql += " AND submitted < " + query->Param(Micros(filter.until));
  return sql;
}

// With labels: the first selects a range of their index, in the order of the page.
std::string SqlOfLabels(Query* query, const JobFilter& filter, int64_t before, int limit) {
  auto label = filter.labels.begin();
  const std::string below = query->Param(before);
  std::string sql = fmt::format(
      "SELECT {} FROM labels AS l CROSS JOIN jobs WHERE l.name = {} AND l.value = {} "
      "AND l.ord < {} AND jobs.ord = l.ord",
      kColumns, query->Param(label->first), query->Param(label->second), below);
  while (++label != filter.labels.end()) {
    sql += fmt::format(
        " AND EXISTS (SELECT 1 FROM labels AS m WHERE m.name = {} AND m.value = {} "
        "AND m.ord = l.ord)",
        query->Param(label->first), query->Param(label->second));
  }
  sql += In(query, "team", filter.teams) + In(query, "state", NamesOf(filter.states));
  return sql + Checked(query, filter) + " ORDER BY l.ord DESC LIMIT " +
         query->Param(int64_t{limit});
}

// One range of the index (team, state, ord) for each pair, merged by the order.
std::string SqlOfRanges(Query* query, const JobFilter& filter, int64_t before, int limit) {
  const std::string below = query->Param(before);
  const std::string checked = Checked(query, filter);
  const std::string most = query->Param(int64_t{limit});
  std::vector<std::string> teams;
  for (const std::string& team : filter.teams) teams.push_back(query->Param(team));
  std::string sql;
  for (const std::string& state : NamesOf(StatesOrAll(filter.states))) {
    const std::string name = query->Param(state);
    for (const std::string& team : teams) {
      sql += fmt::format(
          "{}SELECT * FROM (SELECT {} FROM jobs WHERE team = {} AND state = {} AND jobs.ord < {}{} "
          "ORDER BY ord DESC LIMIT {}) AS one",
          sql.empty() ? "" : " UNION ALL ", kColumns, team, name, below, checked, most);
    }
  }
  return fmt::format("SELECT * FROM ({}) AS every ORDER BY ord DESC LIMIT {}", sql, most);
}

std::string SqlOf(Query* query, const JobFilter& filter, int64_t before, int limit) {
  if (!filter.labels.empty()) return SqlOfLabels(query, filter, before, limit);
  const size_t ranges = filter.teams.size() * StatesOrAll(filter.states).size();
  if (ranges > 1 && ranges <= kMostRanges) return SqlOfRanges(query, filter, before, limit);
  std::string sql =
      fmt::format("SELECT {} FROM jobs WHERE jobs.ord < {}", kColumns, query->Param(before));
  sql += In(query, "team", filter.teams) + In(query, "state", NamesOf(filter.states));
  if (filter.teams.empty()) sql += OnlyUnfinished(filter.states);
  return sql + Checked(query, filter) + " ORDER BY ord DESC LIMIT " + query->Param(int64_t{limit});
}

JobSummary ReadSummary(const Statement& row) {
  JobSummary job;
  job.order = row.Int(0);
  job.id = row.Text(1);
  job.name = ValidUtf8(row.Text(2));
  job.ended = Wall(row.Int(11));
  const std::optional<JobState> state = job::ParseJobState(row.Text(3));
  // As in a whole record (sql_store.cc).
  job.state = state.value_or(job.ended == WallTime{} ? JobState::kRunning : JobState::kFailed);
  job.reason = ValidUtf8(row.Text(4));
  job.engine = row.Text(5);
  job.team = row.Text(6);
  job.user = row.Text(7);
  job.labels = ParseLabels(row.Text(8));
  job.submitted = Wall(row.Int(9));
  job.started = Wall(row.Int(10));
  job.last_seq = row.Int(12);
  return job;
}

Status CheckText(std::string_view text) {
  if (text.size() <= kMostText && IsUtf8(text) && text.find('\0') == std::string_view::npos)
    return Status::Ok();
  return InvalidArgument(fmt::format("a filter's word \"{}\" is not UTF-8 of at most {} bytes",
                                     EscapedUtf8(text.substr(0, 64)), kMostText));
}

}  // namespace

Status CheckFilter(const JobFilter& filter) {
  for (const size_t values : {filter.states.size(), filter.teams.size(), filter.labels.size()}) {
    if (values > kMostValues) {
      return InvalidArgument(
          fmt::format("a filter has {} values, expected at most {}", values, kMostValues));
    }
  }
  for (const auto& [name, value] : filter.labels) {
    TRY(CheckText(name));
    TRY(CheckText(value));
  }
  for (const std::string& team : filter.teams) TRY(CheckText(team));
  TRY(CheckText(filter.name_prefix));
  TRY(CheckText(filter.user));
  return CheckText(filter.engine);
}

Status ReadJobs(SqlConnection& db, const JobFilter& filter, int64_t before, int limit,
                std::vector<JobSummary>* jobs) {
  Query query;
  const std::string sql = SqlOf(&query, filter, before, limit);
  TRY_ASSIGN(Statement select, db.Prepare(sql));
  query.Bind(&select);
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return Status::Ok();
    jobs->push_back(ReadSummary(select));
  }
}

Status ReadStoredEvents(SqlConnection& db, const SqlDialect& dialect, int64_t after, int limit,
                        std::vector<StoredEvent>* events) {
  TRY_ASSIGN(Statement select, db.Prepare(dialect.all_events));
  select.Bind(1, after).Bind(2, int64_t{limit});
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return Status::Ok();
    StoredEvent one{select.Int(0), select.Text(1), select.Text(2), {}};
    Result<json::object> body = ParseJsonObject(select.Text(6));
    if (!body.ok()) body = json::object{{"unreadable", body.status().message()}};
    one.event = {select.Int(3), Wall(select.Int(4)), select.Text(5), std::move(*body)};
    events->push_back(std::move(one));
  }
}

std::string LabelText(const JobLabels& labels) {
  json::object object;
  for (const auto& [name, value] : labels) object[name] = value;
  return ToText(object);
}

JobLabels ParseLabels(const std::string& text) {
  JobLabels labels;
  if (text == "{}") return labels;
  const Result<json::object> object = ParseJsonObject(text);
  if (!object.ok()) return labels;
  for (const auto& field : *object) {
    if (field.value().is_string())
      labels.emplace(field.key(), std::string_view(field.value().get_string()));
  }
  return labels;
}

}  // namespace shoal::controller
