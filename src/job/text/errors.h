// Errors of one job file, collected, sorted by location and reported together; and suggestions for
// misspelt names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::job {

// A location in the job file (1-based; line 0: unknown) or in the --set argument number `set`.
struct SourceLocation {
  int line = 0;
  int column = 0;
  int set = -1;
};

// "FILE:LINE:COL", or the text of the --set argument. `set`: Errors::overrides.
std::string FormatLocation(const std::string& file, const std::vector<std::string>& set,
                           const SourceLocation& place);

class Errors {
 public:
  // `overrides`: the arguments of ParseJob, for messages; values of env.… are hidden.
  Errors(std::string file, const std::vector<std::string>& overrides);

  // Adds "FILE:LINE:COL: path: sentence"; an empty path is omitted.
  void Add(const SourceLocation& place, const std::string& path, const std::string& sentence);
  bool empty() const { return count_ == 0; }
  // The --set arguments as shown in messages.
  const std::vector<std::string>& overrides() const { return overrides_; }
  // True if an error was added for exactly this path.
  bool At(const std::string& path) const;
  // OK without errors, else InvalidArgument with the first ten, one per line.
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

// The candidate with the smallest edit distance to `word` (a transposition counts as one edit);
// empty if none is close enough to be a misspelling. O(candidates · length²).
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);
// "; did you mean 'replicas'?", or an empty text.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace shoal::job
