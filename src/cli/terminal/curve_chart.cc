#include "cli/terminal/curve_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace shoal::cli {
namespace {

constexpr int kLabel = 9;  // columns of the value axis, with the line

// Dots in cells of `across` × `down`.
class Canvas {
 public:
  Canvas(int columns, int rows, bool utf8)
      : columns_(columns), rows_(rows), utf8_(utf8), cells_(static_cast<size_t>(columns * rows)) {}

  int dots_across() const { return columns_ * (utf8_ ? 2 : 1); }
  int dots_down() const { return rows_ * (utf8_ ? 4 : 1); }

  // (0, 0) is at the bottom left.
  void Set(int x, int y) {
    const int down = dots_down() - 1 - y;
    const int across = utf8_ ? 2 : 1, high = utf8_ ? 4 : 1;
    const int cell = (down / high) * columns_ + x / across;
    cells_[static_cast<size_t>(cell)] |= utf8_ ? Bit(x % 2, down % 4) : 1U;
  }

  std::string Row(int row) const {
    std::string text;
    for (int i = 0; i < columns_; ++i) {
      const unsigned dots = cells_[static_cast<size_t>(row * columns_ + i)];
      if (!utf8_ || dots == 0) {
        text += dots == 0 ? ' ' : '*';
      } else {  // U+2800 to U+28FF
        text += "\xE2";
        text += static_cast<char>(0xA0 | (dots >> 6));
        text += static_cast<char>(0x80 | (dots & 0x3F));
      }
    }
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

 private:
  static unsigned Bit(int x, int down) {
    constexpr unsigned kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    return kBits[down][x];
  }

  const int columns_;
  const int rows_;
  const bool utf8_;
  std::vector<unsigned> cells_;
};

int Scale(double value, double least, double greatest, int dots) {
  if (greatest <= least) return dots / 2;
  const double share = (value - least) / (greatest - least);
  return std::clamp(static_cast<int>(std::lround(share * (dots - 1))), 0, dots - 1);
}

void Connect(int x0, int y0, int x1, int y1, Canvas* canvas) {
  const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
  for (int i = 0; i <= steps; ++i)
    canvas->Set(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps);
}

}  // namespace

size_t ChartPoints(const ChartStyle& style) {
  const int columns = std::max(style.width, ChartStyle::kLeastWidth) - kLabel;
  return static_cast<size_t>(columns * (style.utf8 ? 2 : 1));
}

std::vector<std::string> DrawChart(const std::vector<std::pair<double, double>>& points,
                                   const std::string& last_x, const ChartStyle& style) {
  const int columns = std::max(style.width, ChartStyle::kLeastWidth) - kLabel;
  Canvas canvas(columns, style.height, style.utf8);
  const auto [low, high] = std::ranges::minmax(
      points, {}, [](const std::pair<double, double>& point) { return point.second; });
  const double first = points.front().first, last = points.back().first;
  int x_before = -1, y_before = 0;
  for (const auto& [x, y] : points) {
    const int across = last > first ? Scale(x, first, last, canvas.dots_across()) : 0;
    const int up = Scale(y, low.second, high.second, canvas.dots_down());
    if (x_before < 0) canvas.Set(across, up);
    if (x_before >= 0) Connect(x_before, y_before, across, up, &canvas);
    x_before = across;
    y_before = up;
  }
  const std::string bar = style.utf8 ? "│" : "|";
  std::vector<std::string> lines;
  for (int row = 0; row < style.height; ++row) {
    std::string label;
    if (row == 0) label = ShortNumber(high.second);
    if (row == style.height - 1 && row > 0) label = ShortNumber(low.second);
    lines.push_back(fmt::format("{:>{}}{}{}", label, kLabel - 1, bar, canvas.Row(row)));
  }
  std::string axis(static_cast<size_t>(kLabel - 1), ' ');
  axis += style.utf8 ? "└" : "+";
  for (int i = 0; i < columns; ++i) axis += style.utf8 ? "─" : "-";
  lines.push_back(axis);
  lines.push_back(fmt::format("{:>{}}{:>{}}", "0", kLabel + 1, last_x, columns - 1));
  return lines;
}

std::string ShortNumber(double value) {
  constexpr std::array<std::string_view, 5> kUnits = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  if (std::abs(value) >= 10'000) {
    for (; std::abs(value) >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  }
  const std::string text = fmt::format("{:.4g}", value);
  return (text.size() > 6 ? fmt::format("{:.1e}", value) : text) + std::string(kUnits[unit]);
}

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    std::ranges::transform(text, text.begin(), [](unsigned char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace shoal::cli
