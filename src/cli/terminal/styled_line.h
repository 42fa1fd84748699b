// A line for a terminal made of pieces with a style each, cut to a width by columns, not bytes;
// and the cleaning of what others print. Used by progress.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::cli {

enum class Style : uint8_t { kPlain, kBold, kDim, kGreen, kYellow, kRed };

// Columns of a text: its code points. (East Asian wide letters are counted as one: names of roles
// and units have none.)
int Columns(std::string_view text);

class StyledLine {
 public:
  StyledLine& Add(std::string text, Style style = Style::kPlain);
  int columns() const;
  // At most `width` columns; what is cut ends in "…". Trailing blanks are dropped.
  std::string Render(int width, bool color) const;

 private:
  std::vector<std::pair<std::string, Style>> pieces_;
};

}  // namespace shoal::cli
