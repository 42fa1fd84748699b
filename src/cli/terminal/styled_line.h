// A line of styled pieces for a terminal, truncated by columns, not bytes. Used by progress.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::cli {

enum class Style : uint8_t { kPlain, kBold, kDim, kGreen, kYellow, kRed };

// Columns of a text, counted as code points. East Asian wide letters count as one; names of roles
// and units have none.
int Columns(std::string_view text);

class StyledLine {
 public:
  StyledLine& Add(std::string text, Style style = Style::kPlain);
  int columns() const;
  // At most `width` columns; a truncated line ends in "…". Removes trailing spaces.
  std::string Render(int width, bool color) const;

 private:
  std::vector<std::pair<std::string, Style>> pieces_;
};

}  // namespace shoal::cli
