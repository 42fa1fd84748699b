#include "cli/sql/grid_text.h"

#include <algorithm>
#include <vector>

#include "base/utf8.h"
#include "cli/jobs/job_text.h"
#include "cli/terminal/report.h"
#include "sql/tables/row_writer.h"

namespace shoal::cli {
namespace {

constexpr size_t kMaxCell = 60;  // characters

// On one line, cut where it is too long.
std::string Shown(const std::string& cell) {
  std::string text = ValidUtf8(cell);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  size_t end = 0;
  for (size_t count = 0; end < text.size(); ++count) {
    if (count == kMaxCell) return text.substr(0, end) + "…";
    end += std::max<size_t>(1, Utf8Length(std::string_view(text).substr(end)));
  }
  return text;
}

}  // namespace

std::string GridText(const sql::Grid& grid) {
  std::vector<std::vector<std::string>> rows;
  rows.emplace_back();
  for (const std::string& name : grid.columns) rows.back().push_back(Shown(name));
  for (const auto& row : grid.rows) {
    rows.emplace_back();
    for (const json::value& value : row) rows.back().push_back(Shown(sql::ValueText(value)));
  }
  std::string count = std::to_string(grid.rows.size());
  if (grid.more) {
    count = "the first " + count + " rows; --rows shows more";
  } else {
    count += grid.rows.size() == 1 ? " row" : " rows";
  }
  return Table(rows) + "(" + count + ")\n";
}

std::string GridLine(const sql::Grid& grid) {
  json::array columns;
  for (const std::string& name : grid.columns) columns.emplace_back(EscapedUtf8(name));
  json::array rows;
  for (const auto& row : grid.rows) rows.emplace_back(json::array(row.begin(), row.end()));
  return JsonLine({{"event", "rows"},
                   {"columns", std::move(columns)},
                   {"types", json::array(grid.types.begin(), grid.types.end())},
                   {"rows", std::move(rows)},
                   {"more", grid.more}});
}

}  // namespace shoal::cli
