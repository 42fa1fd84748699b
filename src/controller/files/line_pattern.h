// A regular expression that selects lines of logs, in time linear in the text (RE2's syntax). Used
// by log_search.h.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::controller {

// Thread-safe after Compile.
class LinePattern {
 public:
  // A longer one is refused.
  static constexpr size_t kLongest = 4096;

  // InvalidArgument says where and why. The syntax is RE2's; `^` and `$` are the ends of a line. A
  // line need not be valid UTF-8: other bytes match no character class.
  static Result<LinePattern> Compile(std::string_view text, bool ignore_case = false);

  LinePattern(LinePattern&&) noexcept;
  LinePattern& operator=(LinePattern&&) noexcept;
  ~LinePattern();

  // Calls `on_line` with each matching line of `text` without its line feed, and its offset in
  // `text`, until it returns false. The last line may be without a line feed. Searches whole blocks
  // and not line by line: for text that every pattern must contain, then for the pattern.
  void FindLines(std::string_view text,
                 const std::function<bool(size_t offset, std::string_view line)>& on_line) const;
  bool Matches(std::string_view line) const;

  // What every matching line contains; empty if nothing is known (or letters may differ in case).
  const std::string& literal() const;

 private:
  struct Compiled;
  explicit LinePattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

// The longest text that each match of the pattern contains, as far as its plain parts show it; for
// a pattern with alternatives or flags none. Pure function, tested by itself.
std::string RequiredLiteral(std::string_view pattern);

}  // namespace shoal::controller
