// Words as points of a plane, as an SVG picture. Used by `shoal map`.
#pragma once

#include <string>
#include <vector>

namespace shoal::cli {

struct MapPoint {
  std::string word;
  double x = 0;
  double y = 0;
  std::string title;  // shown under the mouse
  bool marked = false;
};

struct WordMap {
  std::string title;
  std::vector<MapPoint> points;  // the most important first: labels that do not fit are left out
  std::string x_title;
  std::string y_title;
};

// A whole document without scripts and outer references, 1000 units wide. Each point has its title
// for the mouse, and its word as a label where there is room.
std::string WordMapSvg(const WordMap& map);
// The picture in a page.
std::string WordMapPage(const WordMap& map);

}  // namespace shoal::cli
