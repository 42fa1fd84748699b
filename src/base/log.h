// The program's own log, on standard error. What tasks print is not this: it goes to the log store.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace shoal {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// From SHOAL_LOG (debug|info|warning|error|off), else warning. Thread-safe.
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();
// The name of this process before each line: "coordinator", "worker-3".
void SetLogName(std::string_view name);
void LogLine(LogLevel level, std::string_view text);

template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level >= GetLogLevel()) LogLine(level, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace shoal
