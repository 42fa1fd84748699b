// `shoal usage`: what jobs have held, by month, team, user, queue or engine.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "controller/usage/usage.h"

namespace shoal::cli {
namespace {

using controller::UsageKey;
using controller::UsageTable;
using controller::UsageTotals;

constexpr const char* kColumns = "month|team|user|queue|engine";
constexpr double kMillisPerHour = 3'600'000;
constexpr double kCpu = 1000 * kMillisPerHour;  // of HeldAmounts in a core-hour, and so on
constexpr double kMemory = 1024.0 * 1024 * kMillisPerHour;
constexpr double kGpu = 1000 * kMillisPerHour;

struct UsageArguments {
  std::string month;
  std::string since;
  std::string until;
  std::string team;
  std::string by = "team,month";
  bool csv = false;
};

std::string FieldOf(const UsageKey& key, const std::string& column) {
  if (column == "month") return MonthText(key.month);
  if (column == "team") return key.team;
  if (column == "user") return key.user;
  if (column == "queue") return key.queue;
  return key.engine;
}

Result<std::vector<std::string>> ColumnsOf(const std::string& by) {
  std::vector<std::string> columns;
  std::string word;
  for (const char c : by + ",") {
    if (c != ',') {
      word += c;
      continue;
    }
    if (word.empty() || word.find('|') != std::string::npos ||
        ("|" + std::string(kColumns) + "|").find("|" + word + "|") == std::string::npos)
      return InvalidArgument("--by: got '" + word +
                             "', expected month, team, user, queue, engine or several of them "
                             "separated by commas");
    if (std::ranges::find(columns, word) == columns.end()) columns.push_back(word);
    word.clear();
  }
  return columns;
}

Result<controller::UsageQuery> QueryOf(const UsageArguments& arguments, WallTime now) {
  controller::UsageQuery query{controller::MonthOf(now), controller::MonthOf(now)};
  if (!arguments.month.empty()) {
    TRY_ASSIGN(query.first, controller::ParseMonth(arguments.month));
    query.last = query.first;
  }
  if (!arguments.since.empty()) {
    TRY_ASSIGN(query.first, controller::ParseMonth(arguments.since));
  }
  if (!arguments.until.empty()) {
    TRY_ASSIGN(query.last, controller::ParseMonth(arguments.until));
    if (arguments.since.empty()) query.first = query.last;
  }
  if (!arguments.team.empty()) query.teams = {arguments.team};
  TRY(CheckUsageQuery(query));
  return query;
}

// Rows with equal columns are one.
using Grouped = std::vector<std::pair<std::vector<std::string>, UsageTotals>>;
Grouped Group(const UsageTable& table, const std::vector<std::string>& columns) {
  std::map<std::vector<std::string>, UsageTotals> sums;
  for (const auto& [key, totals] : table) {
    std::vector<std::string> row;
    for (const std::string& column : columns) row.push_back(FieldOf(key, column));
    sums[row] += totals;
  }
  return {sums.begin(), sums.end()};
}

std::vector<double> Numbers(const UsageTotals& t) {
  return {t.task_ms / kMillisPerHour, t.held[0] / kCpu, t.held[1] / kMemory, t.held[2] / kGpu,
          t.idle[2] / kGpu,           t.idle[0] / kCpu, t.failed[2] / kGpu,  t.failed[0] / kCpu};
}

const std::vector<std::string>& NumberNames() {
  static const std::vector<std::string> names = {
      "task_hours",     "cpu_hours",      "memory_gib_hours", "gpu_hours",
      "gpu_hours_idle", "cpu_hours_idle", "gpu_hours_failed", "cpu_hours_failed"};
  return names;
}

// A cell of CSV, RFC 4180. A text that a spreadsheet would take for a formula begins with a quote.
std::string Cell(std::string text) {
  if (!text.empty() && std::string_view("=+-@").find(text[0]) != std::string_view::npos)
    text.insert(0, "'");
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string Csv(const Grouped& rows, const std::vector<std::string>& columns) {
  std::string out;
  for (const std::string& column : columns) out += column + ",";
  out += "jobs";
  for (const std::string& name : NumberNames()) out += "," + name;
  out += "\n";
  for (const auto& [key, totals] : rows) {
    for (const std::string& field : key) out += Cell(field) + ",";
    out += std::to_string(totals.jobs);
    for (const double number : Numbers(totals)) out += fmt::format(",{:.6f}", number);
    out += "\n";
  }
  return out;
}

std::string Text(const Grouped& rows, const std::vector<std::string>& columns) {
  std::vector<std::vector<std::string>> table(1);
  for (std::string column : columns) {
    std::ranges::transform(column, column.begin(),
                           [](char c) { return static_cast<char>(c - 32); });
    table[0].push_back(column);
  }
  for (const char* name :
       {"JOBS", "TASK-H", "CPU-H", "GIB-H", "GPU-H", "GPU-H IDLE", "GPU-H FAILED"})
    table[0].emplace_back(name);
  UsageTotals all;
  const auto add = [&](std::vector<std::string> row, const UsageTotals& totals) {
    const std::vector<double> n = Numbers(totals);
    row.push_back(std::to_string(totals.jobs));
    for (const double number : {n[0], n[1], n[2], n[3], n[4], n[6]})
      row.push_back(fmt::format("{:.2f}", number));
    table.push_back(std::move(row));
  };
  for (const auto& [key, totals] : rows) {
    std::vector<std::string> row = key;
    for (std::string& field : row) field = field.empty() ? "-" : field;
    add(std::move(row), totals);
    all += totals;
  }
  std::vector<std::string> last(columns.size());
  last[0] = "all";
  if (rows.size() > 1) add(std::move(last), all);
  return Table(table);
}

std::string Json(const Grouped& rows, const std::vector<std::string>& columns) {
  std::string out;
  for (const auto& [key, totals] : rows) {
    json::object row;
    for (size_t i = 0; i < columns.size(); ++i) row[columns[i]] = key[i];
    row["jobs"] = totals.jobs;
    const std::vector<double> numbers = Numbers(totals);
    for (size_t i = 0; i < numbers.size(); ++i) row[NumberNames()[i]] = numbers[i];
    out += JsonLine(row);
  }
  return out;
}

Result<std::string> Show(const Context& context, const UsageArguments& arguments) {
  TRY_ASSIGN(const std::vector<std::string> columns, ColumnsOf(arguments.by));
  TRY_ASSIGN(const controller::UsageQuery query, QueryOf(arguments, RealClock::Get()->Wall()));
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const UsageTable table, jobs->Usage(query));
  const Grouped rows = Group(table, columns);
  if (arguments.csv) return Csv(rows, columns);
  if (context.json) return Json(rows, columns);
  if (rows.empty())
    return "no job held anything from " + MonthText(query.first) + " to " + MonthText(query.last) +
           "\n";
  return Text(rows, columns);
}

int Usage(const Context& context, const UsageArguments& arguments) {
  const Result<std::string> text = Show(context, arguments);
  return text.ok() ? PrintResult(*text) : PrintError(text.status());
}

constexpr const char* kUsageFooter =
    R"help(A job holds the resources of its tasks from its admission until it is suspended, preempted or ends.
IDLE is the part while a task did not run: others had not joined, images were pulled, programs started again.
FAILED is the part of jobs that failed. Months are of UTC; removed jobs count, too.

Examples:
  shoal usage                                          this month, by team
  shoal usage --since 2026-09 --by team,user --csv
  shoal usage --month 2026-10 --by queue --json)help";

}  // namespace

void AddUsage(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<UsageArguments>();
  CLI::App* sub = app.add_subcommand("usage", "Sum up what jobs have held, by team and month");
  CLI::Option* const month =
      sub->add_option("--month", arguments->month, "This month only, for example 2026-11 [now]")
          ->type_name("MONTH");
  sub->add_option("--since", arguments->since, "First month")->type_name("MONTH")->excludes(month);
  sub->add_option("--until", arguments->until, "Last month [now]")
      ->type_name("MONTH")
      ->excludes(month);
  sub->add_option("--team", arguments->team, "Only jobs of this team")->type_name("TEAM");
  sub->add_option("--by", arguments->by,
                  "Columns to sum by: month, team, user, queue, engine [team,month]")
      ->type_name("COLUMNS");
  sub->add_flag("--csv", arguments->csv, "Print comma-separated values");
  sub->footer(kUsageFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Usage(context, *arguments); };
  });
}

}  // namespace shoal::cli
