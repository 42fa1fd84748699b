#include "cli/models/word_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "cli/models/html.h"

namespace shoal::cli {
namespace {

constexpr double kWidth = 1000;
constexpr double kHeight = 800;
constexpr double kMargin = 50;
constexpr double kTextHeight = 13;
constexpr double kLetter = 6.4;   // width of one, about
constexpr size_t kMaxLabel = 40;  // characters

struct Box {
  double left, top, right, bottom;
  bool Meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

size_t Letters(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// From values to units of the picture.
struct Scale {
  double least, span, from, to;
  double At(double value) const { return from + (value - least) / span * (to - from); }
};

Scale ScaleOf(const std::vector<MapPoint>& points, double MapPoint::*coordinate, double from,
              double to) {
  double least = 0, most = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double value = points[i].*coordinate;
    least = i == 0 ? value : std::min(least, value);
    most = i == 0 ? value : std::max(most, value);
  }
  return {least, most > least ? most - least : 1, from, to};
}

std::string Label(const std::string& word) {
  std::string text = ValidUtf8(word);
  size_t end = 0;
  for (size_t count = 0; end < text.size(); ++count) {
    if (count == kMaxLabel) return text.substr(0, end) + "…";
    end += std::max<size_t>(1, Utf8Length(std::string_view(text).substr(end)));
  }
  return text;
}

// The place of a label beside its point that meets no other, if there is one.
class Labels {
 public:
  std::string Place(double x, double y, const std::string& word) {
    const std::string text = Label(word);
    const double width = kLetter * static_cast<double>(Letters(text));
    for (const auto& [left, bottom] : {std::pair{x + 5, y + 4},
                                       {x - 5 - width, y + 4},
                                       {x - width / 2, y - 6},
                                       {x - width / 2, y + kTextHeight + 3}}) {
      const Box box{left, bottom - kTextHeight, left + width, bottom + 2};
      const bool inside = box.left > 2 && box.right < kWidth - 2 && box.top > 20;
      if (!inside || std::ranges::any_of(taken_, [&](const Box& one) { return one.Meets(box); }))
        continue;
      taken_.push_back(box);
      return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", left, bottom, HtmlText(text));
    }
    return "";
  }

 private:
  std::vector<Box> taken_;
};

std::string Picture(const WordMap& map, std::string_view attributes) {
  const Scale across = ScaleOf(map.points, &MapPoint::x, kMargin, kWidth - kMargin);
  const Scale up = ScaleOf(map.points, &MapPoint::y, kHeight - kMargin, kMargin);
  std::string svg = fmt::format(
      "<svg {} viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\" "
      "aria-label=\"{}\"><rect width=\"{}\" height=\"{}\" fill=\"#fff\"/>\n",
      attributes, kWidth, kHeight, HtmlText(map.title), kWidth, kHeight);
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" fill=\"#666\" text-anchor=\"middle\">{}</text>\n"
      "<text transform=\"translate(14 {}) rotate(-90)\" fill=\"#666\" "
      "text-anchor=\"middle\">{}</text>\n",
      kWidth / 2, kHeight - 12, HtmlText(map.x_title), kHeight / 2, HtmlText(map.y_title));
  Labels labels;
  std::vector<const MapPoint*> order;
  for (const MapPoint& point : map.points) order.push_back(&point);
  std::ranges::stable_partition(order, [](const MapPoint* point) { return point->marked; });
  for (const MapPoint* const point : order) {
    const double x = across.At(point->x), y = up.At(point->y);
    svg += fmt::format("<g{}><title>{}</title><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>",
                       point->marked ? " fill=\"#b3202c\"" : " fill=\"#1f4e79\"",
                       HtmlText(point->title.empty() ? point->word : point->title), x, y,
                       point->marked ? "4.5" : "3");
    svg += labels.Place(x, y, point->word) + "</g>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string WordMapSvg(const WordMap& map) {
  return Picture(map, fmt::format("xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\"",
                                  kWidth, kHeight));
}

std::string WordMapPage(const WordMap& map) {
  const std::string title = HtmlText(map.title);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<style>body{{font:15px/1.45 sans-serif;margin:1em auto;"
      "max-width:1000px;padding:0 1em}}h1{{font-size:1.4em;overflow-wrap:anywhere}}"
      "svg{{max-width:100%;height:auto}}circle:hover{{fill:#e07b00}}</style></head><body>\n"
      "<h1>{}</h1>\n{}</body></html>\n",
      title, title, Picture(map, ""));
}

}  // namespace shoal::cli
