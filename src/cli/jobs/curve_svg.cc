#include "cli/jobs/curve_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "cli/terminal/curve_chart.h"

namespace shoal::cli {
namespace {

constexpr double kWidth = 800;
constexpr double kLeft = 70, kRight = 20, kTop = 40, kPlot = 220, kAxis = 45, kLegendLine = 18;
constexpr int kLegendColumns = 3;
// Told apart with every kind of colour vision (Okabe and Ito, 2008).
constexpr std::array<std::string_view, 8> kColors = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                     "#E69F00", "#56B4E9", "#000000", "#999900"};

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : ValidUtf8(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (static_cast<unsigned char>(c) >= ' ')
      out += c;
  }
  return out;
}

std::string Text(double x, double y, std::string_view anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     Escaped(text));
}

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  void Add(double value) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  void Widen() {
    if (greatest > least) return;
    const double by = least == 0 ? 1 : std::abs(least) * 0.1;
    least -= by;
    greatest += by;
  }
};

// The unit of the time axis and its seconds.
std::pair<std::string_view, double> TimeUnit(double seconds) {
  if (seconds < 300) return {"s", 1};
  if (seconds < 3 * 3600) return {"min", 60};
  return {"h", 3600};
}

class Panel {
 public:
  Panel(const PlotPanel& panel, double top) : panel_(panel), top_(top + kTop) {
    for (const PlotLine& line : panel.lines) {
      for (const CurvePoint& point : line.points) {
        x_.Add(point.seconds);
        y_.Add(point.value);
      }
    }
    if (x_.greatest <= x_.least) x_.greatest = x_.least + 1;
    y_.Widen();
  }

  static double Height(const PlotPanel& panel) {
    const size_t rows = (panel.lines.size() + kLegendColumns - 1) / kLegendColumns;
    return kTop + kPlot + kAxis + kLegendLine * static_cast<double>(rows);
  }

  std::string Draw() const {
    std::string out = fmt::format("<g font-size=\"12\">\n<g font-size=\"15\">{}</g>",
                                  Text(kLeft, top_ - 14, "start", panel_.title));
    return out + Axes() + Lines() + Legend() + "</g>\n";
  }

 private:
  double X(double seconds) const {
    return kLeft + (seconds - x_.least) / (x_.greatest - x_.least) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return top_ + kPlot - (value - y_.least) / (y_.greatest - y_.least) * kPlot;
  }

  std::string Axes() const {
    std::string out;
    for (const double tick : AxisTicks(y_.least, y_.greatest, 6)) {
      out += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#ddd\"/>\n", kLeft, Y(tick),
                         kWidth - kRight);
      out += Text(kLeft - 6, Y(tick) + 4, "end", ShortNumber(tick));
    }
    const bool time = panel_.x_title.empty();
    const auto [unit, seconds] =
        time ? TimeUnit(x_.greatest - x_.least) : std::pair<std::string_view, double>("", 1);
    for (const double tick : AxisTicks(x_.least / seconds, x_.greatest / seconds, 8)) {
      const double x = X(tick * seconds);
      out += fmt::format("<path d=\"M{:.1f} {:.1f}v5\" stroke=\"#333\"/>\n", x, top_ + kPlot);
      out += Text(x, top_ + kPlot + 18, "middle", ShortNumber(tick));
    }
    out += Text((kLeft + kWidth - kRight) / 2, top_ + kPlot + 34, "middle",
                time ? "time since the first point, " + std::string(unit) : panel_.x_title);
    return out + fmt::format(
                     "<path d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\" fill=\"none\" "
                     "stroke=\"#333\"/>\n",
                     kLeft, top_, top_ + kPlot, kWidth - kRight);
  }

  std::string Lines() const {
    std::string out;
    for (size_t i = 0; i < panel_.lines.size(); ++i) {
      const auto& points = panel_.lines[i].points;
      if (points.empty()) continue;
      out += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"",
                         kColors[i % kColors.size()]);
      for (const CurvePoint& point : points)
        out += fmt::format("{:.1f},{:.1f} ", X(point.seconds), Y(point.value));
      if (points.size() == 1)  // a line of one point is not drawn
        out += fmt::format("{:.1f},{:.1f}", X(points[0].seconds) + 2, Y(points[0].value));
      out += "\"/>\n";
      if (!panel_.dots) continue;
      for (const CurvePoint& point : points) {
        out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                           X(point.seconds), Y(point.value), kColors[i % kColors.size()]);
      }
    }
    return out;
  }

  std::string Legend() const {
    std::string out;
    const double step = (kWidth - kLeft - kRight) / kLegendColumns;
    for (size_t i = 0; i < panel_.lines.size(); ++i) {
      const double x = kLeft + step * static_cast<double>(i % kLegendColumns);
      const double y =
          top_ + kPlot + kAxis + 8 + kLegendLine * static_cast<double>(i / kLegendColumns);
      out += fmt::format("<path d=\"M{:.1f} {:.1f}h16\" stroke=\"{}\" stroke-width=\"3\"/>\n", x,
                         y - 4, kColors[i % kColors.size()]);
      out += Text(x + 22, y, "start", panel_.lines[i].label);
    }
    return out;
  }

  const PlotPanel& panel_;
  const double top_;
  Range x_;
  Range y_;
};

}  // namespace

std::vector<double> AxisTicks(double least, double greatest, int wanted) {
  std::vector<double> ticks;
  const double rough = (greatest - least) / wanted;
  if (!(rough > 0) || !std::isfinite(rough)) return {least};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power < rough) continue;
    step = times * power;
    break;
  }
  const double first = std::ceil(least / step);
  const double count = std::floor(greatest / step) - first;
  for (int i = 0; i <= static_cast<int>(std::min(count, 100.0)); ++i)
    ticks.push_back((first + i) * step);
  return ticks;
}

std::string PlotElement(const std::vector<PlotPanel>& panels) {
  double height = 10;
  std::string body;
  for (const PlotPanel& panel : panels) {
    body += Panel(panel, height).Draw();
    height += Panel::Height(panel);
  }
  height += 10;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{2}"
      "</svg>\n",
      kWidth, height, body);
}

std::string PlotSvg(const std::vector<PlotPanel>& panels) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + PlotElement(panels);
}

}  // namespace shoal::cli
