#include "cli/models/html.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace shoal::cli {
namespace {

constexpr size_t kMostBytes = 200;  // of one text

constexpr const char* kStyle = R"css(body{font:15px/1.45 sans-serif;color:#222;margin:2em auto;
max-width:860px;padding:0 1em}h1{font-size:1.6em;overflow-wrap:anywhere}h2{font-size:1.2em;margin-top:2em;
border-bottom:1px solid #ccc}table{border-collapse:collapse;margin:.7em 0}td,th{padding:.2em .7em;
text-align:left;border-bottom:1px solid #eee;vertical-align:top;overflow-wrap:anywhere;
unicode-bidi:isolate}pre{white-space:pre-wrap;overflow-wrap:anywhere}th{font-weight:600}.numbers td+td,.numbers th+th{text-align:right;
font-variant-numeric:tabular-nums}.bar{display:inline-block;height:.8em}svg{max-width:100%;
height:auto}p{max-width:46em}.note{color:#666})css";

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

std::string HtmlPage(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}</body>\n"
      "</html>\n",
      title, kStyle, body);
}

}  // namespace shoal::cli
