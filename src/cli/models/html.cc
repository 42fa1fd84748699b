#include "cli/models/html.h"

#include "base/utf8.h"

namespace shoal::cli {
namespace {

constexpr size_t kMostBytes = 200;  // of one text

std::string HtmlRow(const std::vector<std::string>& cells, const char* tag) {
  std::string row = "<tr>";
  for (const std::string& cell : cells)
    row += std::string("<") + tag + ">" + cell + "</" + tag + ">";
  return row + "</tr>\n";
}

}  // namespace

std::string HtmlText(std::string_view text) {
  std::string shown = EscapedUtf8(text.substr(0, 2 * kMostBytes));
  const bool cut = shown.size() > kMostBytes || text.size() > 2 * kMostBytes;
  if (shown.size() > kMostBytes) {
    size_t end = kMostBytes;
    while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0) == 0x80) --end;
    shown.resize(end);
  }
  std::string html;
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      html += "&amp;";
    } else if (c == '<') {
      html += "&lt;";
    } else if (c == '>') {
      html += "&gt;";
    } else if (c == '"') {
      html += "&quot;";
    } else if (c == '\'') {
      html += "&#39;";
    } else if (byte < ' ' || byte == 0x7f) {
      html += "\uFFFD";
    } else {
      html += c;
    }
  }
  return cut ? html + "…" : html;
}

std::string HtmlTable(const std::vector<std::string>& heading,
                      const std::vector<std::vector<std::string>>& rows, bool numbers) {
  std::string table = numbers ? "<table class=\"numbers\">\n" : "<table>\n";
  if (!heading.empty()) table += HtmlRow(heading, "th");
  for (const auto& row : rows) table += HtmlRow(row, "td");
  return table + "</table>\n";
}

}  // namespace shoal::cli
