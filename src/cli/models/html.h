// Text that goes into a page. Names of features, classes and files come from data that may be
// anybody's, so all of it passes through here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::cli {

// Text for the content of an element or a quoted attribute: markup is escaped, what is not UTF-8 is
// written as \xNN, control characters as U+FFFD; longer texts end with "…".
std::string HtmlText(std::string_view text);

// A table: the cells of `heading` (none: no heading) and of the rows, which are HTML already. With
// `numbers` all columns but the first are aligned to the right.
std::string HtmlTable(const std::vector<std::string>& heading,
                      const std::vector<std::vector<std::string>>& rows, bool numbers);

// A whole document without scripts, which may load nothing from elsewhere. `title` and `body` are
// HTML already.
std::string HtmlPage(std::string_view title, std::string_view body);

}  // namespace shoal::cli
