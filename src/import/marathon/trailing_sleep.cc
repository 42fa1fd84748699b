#include "import/marathon/trailing_sleep.h"

#include <string_view>

namespace shoal::importer {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n;");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n;") + 1 - begin);
}

// True for a command that idles: "sleep infinity", "tail -f /dev/null", "while true; do sleep 60;
// done".
bool IsIdle(std::string_view text) {
  constexpr std::string_view kDone = "; done";
  constexpr std::string_view kSleep = "sleep ";
  constexpr size_t kLongNumber = 6;  // digits of seconds: more than a day
  for (const std::string_view head : {"while true; do ", "while :; do "}) {
    if (text.starts_with(head) && text.ends_with(kDone) && text.size() > head.size())
      return text.substr(head.size()).starts_with(kSleep);
  }
  if (text == "tail -f /dev/null") return true;
  if (!text.starts_with(kSleep)) return false;
  const std::string_view time = Trimmed(text.substr(kSleep.size()));
  if (time == "infinity" || time == "inf") return true;
  const bool digits = !time.empty() && time.find_first_not_of("0123456789d") == time.npos;
  return digits && (time.back() == 'd' || time.size() >= kLongNumber);
}

// True if the line has a background program: a '&' that is neither "&&" nor part of a redirection.
bool HasBackgroundPrograms(const std::string& line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '&') continue;
    const char before = i > 0 ? line[i - 1] : '\0';
    const char after = i + 1 < line.size() ? line[i + 1] : '\0';
    if (after == '&') {
      ++i;
    } else if (before != '>' && before != '<' && before != '\\' && after != '>') {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string StripTrailingSleep(const std::string& line) {
  constexpr int kLooks = 8;
  if (HasBackgroundPrograms(line)) return line;
  for (const std::string_view mark : {";", "&&"}) {
    size_t at = line.rfind(mark);
    for (int look = 0; look < kLooks && at != std::string::npos && at > 0; ++look) {
      if (IsIdle(Trimmed(std::string_view(line).substr(at + mark.size()))))
        return line.substr(0, at);
      at = line.rfind(mark, at - 1);
    }
  }
  return line;
}

}  // namespace shoal::importer
