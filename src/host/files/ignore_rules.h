// Rules that exclude files of a job's directory from staging: `.shoalignore`, with the syntax of
// gitignore(5).
//
// Used by snapshot.cc, which walks the directory, adds each directory's file on the way and does
// not descend into ignored directories. Rules of deeper files and of later lines take precedence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::host {

// The file's name, in the directory itself or in any below.
inline constexpr std::string_view kIgnoreFile = ".shoalignore";
// Limits for untrusted files; lines and rules beyond them are ignored.
inline constexpr size_t kMaxIgnoreLine = 1024;
inline constexpr size_t kMaxIgnoreRules = 10'000;

// Copyable. Matching is O(rules × pattern × path²) at worst.
class IgnoreRules {
 public:
  // Adds the lines of a file in the directory `base`: a path relative to the root, without a slash
  // at either end; "" for the root itself. False if lines exceeded the limits above.
  bool Add(std::string_view text, std::string_view base);

  // Whether a rule excludes this path, relative to the root, itself (not a directory above it).
  bool Ignored(std::string_view path, bool is_directory) const;

 private:
  struct Rule {
    std::string base;
    std::string pattern;
    bool negated = false;
    bool directories_only = false;
    bool name_only = false;  // no slash in the pattern: matches the last part of any path
  };
  void AddLine(std::string_view line, std::string_view base);
  static bool Matches(const Rule& rule, std::string_view path, bool is_directory);
  std::vector<Rule> rules_;
};

// gitignore's glob. `by_parts`: "*", "?" and "[…]" do not match a slash, and "**/", "/**", "/**/"
// match directories; otherwise every star matches anything. O(pattern × text²) at worst.
bool GlobMatches(std::string_view pattern, std::string_view text, bool by_parts);

}  // namespace shoal::host
