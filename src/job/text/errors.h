// The errors of one job file: collected, sorted by place, told together; and guesses at what was
// meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::job {

// Where something stood: in the file (1-based; line 0: nowhere in particular) or in the --set
// argument number `set`.
struct SourceLocation {
  int line = 0;
  int column = 0;
  int set = -1;
};

// "FILE:LINE:COL", or the --set argument that it came from. `set`: Errors::overrides.
std::string FormatLocation(const std::string& file, const std::vector<std::string>& set,
                           const SourceLocation& place);

class Errors {
 public:
  // `overrides` as given to ParseJob, for messages; the values of env.… among them are not shown.
  Errors(std::string file, const std::vector<std::string>& overrides);

  // "FILE:LINE:COL: path: sentence"; an empty path is left out.
  void Add(const SourceLocation& place, const std::string& path, const std::string& sentence);
  bool empty() const { return count_ == 0; }
  // The --set arguments as messages show them.
  const std::vector<std::string>& overrides() const { return overrides_; }
  // True if there is one at exactly this path.
  bool At(const std::string& path) const;
  // InvalidArgument with the first ten, one a line; OK if there are none.
  Status ToStatus() const;

 private:
  struct Entry {
    SourceLocation place;
    std::string path;
    std::string text;
  };
  std::string file_;
  std::vector<std::string> overrides_;  // "--set PATH=VALUE"
  std::vector<Entry> entries_;
  size_t count_ = 0;
};

// The candidate nearest to `word` by edit distance, a swap of neighbours counting as one; empty if
// none is near enough to be what was meant. O(candidates · length²).
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);
// "; did you mean 'replicas'?", or nothing.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace shoal::job
