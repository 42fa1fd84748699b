// A curve drawn with characters: braille dots, 2 × 4 to a character, or without UTF-8 with ASCII.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shoal::cli {

struct ChartStyle {
  int width = 80;  // columns of a line, at least kLeastWidth
  int height = 8;  // lines of the drawing, without its axes
  bool utf8 = true;
  static constexpr int kLeastWidth = 24;
};

// Points to draw across a chart, so that each column of dots has one.
size_t ChartPoints(const ChartStyle& style);

// The lines of a chart: value axis on the left with its least and greatest value, time below. `x`
// ascending and finite; neighbours are connected. At least one point.
std::vector<std::string> DrawChart(const std::vector<std::pair<double, double>>& points,
                                   const std::string& last_x, const ChartStyle& style);

// "0.25", "1.2M": at most 8 characters.
std::string ShortNumber(double value);

// Whether the user's locale is one of UTF-8: LC_ALL, LC_CTYPE or LANG, the first that is set.
bool LocaleIsUtf8();

}  // namespace shoal::cli
