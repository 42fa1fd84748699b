#include "cli/models/job_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "cli/jobs/job_text.h"
#include "cli/models/html.h"
#include "cli/models/model_metadata.h"
#include "job/file/write_yaml.h"
#include "job/spec/json.h"

namespace shoal::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kMostTasks = 500;
constexpr size_t kMostSources = 100;
constexpr size_t kMostResults = 200;
constexpr const char* kLeftOut = "…";

std::string Section(std::string_view title, const std::string& content) {
  return content.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", title, content);
}

std::string TableOf(const std::vector<std::string>& heading, const Rows& rows) {
  return rows.empty() ? "" : HtmlTable(heading, rows, false);
}

std::string TimeText(WallTime time) { return time == WallTime{} ? "" : FormatWall(time); }

std::string SummaryPart(const JobPage& page) {
  const controller::JobRecord& record = page.details.view.record;
  Rows rows = {{"State", HtmlText(StateText(record, page.details.view.unattended))}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, HtmlText(value)});
  };
  add("Reason", record.reason);
  add("Engine", record.engine);
  add("Team", record.team);
  add("User", record.user);
  add("Submitted", TimeText(record.submitted));
  add("Started", TimeText(record.started));
  add("Ended", TimeText(record.ended));
  add("Run time", RunTime(record, page.now, page.details.view.suspended));
  add("Damage", record.damage);
  return HtmlTable({}, rows, false);
}

std::string ParametersPart(const job::Job& job) {
  Rows rows;
  for (const auto& [name, value] : job.learn)
    rows.push_back({HtmlText(name), HtmlText(value.text)});
  return TableOf({"Parameter", "Value"}, rows);
}

std::string DataPart(const job::Job& job) {
  Rows rows;
  for (const job::DataSource& data : job.data) {
    std::string sources = HtmlText(data.table);
    size_t shown = 0;
    for (const std::string& source : data.sources) {
      if (shown == kMostSources) {
        sources += fmt::format("<br>and {} more", data.sources.size() - shown);
        break;
      }
      sources += (shown++ == 0 ? "" : "<br>") + HtmlText(source);
    }
    rows.push_back({HtmlText(data.name), sources});
  }
  for (const auto& [name, directory] : job.outputs)
    rows.push_back({HtmlText("output " + name), HtmlText(directory)});
  return TableOf({"Name", "Source"}, rows);
}

std::string ValueText(const json::value& value) {
  if (value.is_double()) return fmt::format("{:.6g}", value.get_double());
  return value.is_string() ? std::string(value.get_string()) : ToText(value);
}

// The tables of the catalogue, with their columns and the condition on their rows.
std::string LineagePart(const JobPage& page) {
  Rows rows;
  for (const json::object& record : page.lineage) {
    const json::value* const tables = record.if_contains("tables");
    if (tables == nullptr || !tables->is_array()) continue;
    for (const json::value& one : tables->get_array()) {
      if (!one.is_object() || rows.size() == kMostSources) continue;
      const json::object& table = one.get_object();
      std::string columns;
      for (const std::string& name : MetadataList(&table, "columns"))
        columns += (columns.empty() ? "" : ", ") + HtmlText(name);
      rows.push_back({HtmlText(GetStringOr(table, "table", "")), columns,
                      HtmlText(GetStringOr(table, "rows", ""))});
    }
  }
  return TableOf({"Table", "Columns", "Rows"}, rows);
}

std::string ResultsPart(const JobPage& page) {
  Rows rows;
  for (const auto& [name, value] : page.details.view.record.result) {
    if (rows.size() == kMostResults) break;
    rows.push_back({HtmlText(std::string(name)), HtmlText(ValueText(value))});
  }
  for (const auto& [name, title] :
       {std::pair{"held_out", "Test data"}, {"validation", "Validation data"}}) {
    const json::object* const quality = FindObject(page.model, name);
    if (quality != nullptr) rows.push_back({title, HtmlText(MeasuresText(*quality))});
  }
  return TableOf({"Result", "Value"}, rows);
}

std::string TasksPart(const JobPage& page) {
  Rows rows;
  for (const controller::TaskRecord& task : page.details.tasks) {
    if (rows.size() == kMostTasks) break;
    rows.push_back({HtmlText(fmt::format("{}-{}", task.role, task.index)),
                    std::to_string(task.attempt + 1),
                    HtmlText(std::string(job::NameOf(task.state))), HtmlText(task.last_line)});
  }
  std::string part = TableOf({"Task", "Attempt", "State", "Last line of a failed attempt"}, rows);
  if (page.details.tasks.size() > kMostTasks)
    part += fmt::format("<p class=\"note\">and {} more tasks</p>\n",
                        page.details.tasks.size() - kMostTasks);
  return part;
}

// The job file; values of variables may be anything, and a page is passed on.
std::string JobFilePart(job::Job job) {
  for (auto& [name, value] : job.env) value = kLeftOut;
  for (job::Role& role : job.roles) {
    for (auto& [name, value] : role.env) value = kLeftOut;
  }
  std::string html;
  const std::string text = EscapedUtf8(job::WriteYaml(job));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    html += HtmlText(std::string_view(text).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return "<pre>" + html + "</pre>\n";
}

}  // namespace

std::string RenderJobPage(const JobPage& page) {
  const controller::JobRecord& record = page.details.view.record;
  const std::string title = "Job " + HtmlText(record.id);
  const Result<job::Job> job = job::FromJson(record.job);
  std::string body = "<h1>" + title + "</h1>\n" + SummaryPart(page);
  if (job.ok()) body += Section("Parameters", ParametersPart(*job));
  if (job.ok()) body += Section("Data", DataPart(*job));
  body += Section("Tables of the catalogue", LineagePart(page));
  if (!page.curves.empty()) body += Section("Curves", PlotElement(page.curves));
  body += Section("Results", ResultsPart(page));
  body += Section("Tasks", TasksPart(page));
  if (job.ok()) body += Section("Job file", JobFilePart(*job));
  return HtmlPage(title, body);
}

}  // namespace shoal::cli
