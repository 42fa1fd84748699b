#include "controller/files/expand_data.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace shoal::controller {
namespace {

// The files that a pattern matches, sorted by name; the pattern itself if there are none or if it
// names a file.
std::vector<std::string> FilesOf(const std::string& pattern) {
  std::error_code error;
  if (pattern.find_first_of("*?[") == std::string::npos || std::filesystem::exists(pattern, error))
    return {pattern};
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (files.empty()) return {pattern};
  std::ranges::sort(files);
  return files;
}

}  // namespace

void ExpandData(job::Job* job) {
  for (job::DataSource& set : job->data) {
    std::vector<std::string> files;
    for (const std::string& source : set.sources)
      std::ranges::move(FilesOf(source), std::back_inserter(files));
    set.sources = std::move(files);
  }
}

}  // namespace shoal::controller
