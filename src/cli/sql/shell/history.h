// Statements of earlier shells, in a file of this user.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::cli {

inline constexpr size_t kMaxHistory = 10'000;
inline constexpr size_t kMaxHistoryEntry = size_t{64} << 10;

// Oldest first. Not thread-safe; several shells may add to one file at once.
class History {
 public:
  // Reads the file, if it is there. An empty path: nothing is kept.
  static Result<History> Open(std::filesystem::path file);

  const std::vector<std::string>& entries() const { return entries_; }
  // Adds a statement, also to the file, unless it is empty, as the last one, too long, or begins
  // with a blank, which keeps it out.
  Status Add(const std::string& statement);
  // The newest entry before `before` that contains the text.
  std::optional<size_t> Find(std::string_view text, size_t before) const;

 private:
  explicit History(std::filesystem::path file) : file_(std::move(file)) {}
  std::filesystem::path file_;
  std::vector<std::string> entries_;
};

}  // namespace shoal::cli
