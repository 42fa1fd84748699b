#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace shoal {
namespace {

LogLevel LevelOfEnvironment() {
  const char* text = std::getenv("SHOAL_LOG");
  const std::string_view name = text == nullptr ? "" : text;
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return LogLevel::kWarning;
}

std::atomic<LogLevel>& Level() {
  static std::atomic<LogLevel> level{LevelOfEnvironment()};
  return level;
}

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("shoal",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

}  // namespace

void SetLogLevel(LogLevel level) { Level() = level; }
LogLevel GetLogLevel() { return Level(); }

void SetLogName(std::string_view name) {
  Logger().set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l " + std::string(name) + ": %v",
                       spdlog::pattern_time_type::utc);
}

void LogLine(LogLevel level, std::string_view text) {
  switch (level) {
    case LogLevel::kDebug:
      Logger().debug("{}", text);
      break;
    case LogLevel::kInfo:
      Logger().info("{}", text);
      break;
    case LogLevel::kWarning:
      Logger().warn("{}", text);
      break;
    case LogLevel::kError:
      Logger().error("{}", text);
      break;
    case LogLevel::kOff:
      break;
  }
}

}  // namespace shoal
