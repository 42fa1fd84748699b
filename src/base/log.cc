#include "base/log.h"

#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"

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

// Standard error, without blocking: lines are logged from event loops, and a reader may not
// read (a pipe, Ctrl-S). What has no room is kept, up to kMostKept, and written before the next
// line; what is lost beyond that is told.
class StderrSink final : public spdlog::sinks::sink {
 public:
  StderrSink() {
    struct stat info {};
    file_ = ::fstat(STDERR_FILENO, &info) == 0 && S_ISREG(info.st_mode);
  }

  void log(const spdlog::details::log_msg& message) override {
    const MutexLock lock(mu_);
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string_view text(line.data(), line.size());
    WriteKept();
    if (lost_ > 0 && kept_.empty()) {
      kept_ = "(" + std::to_string(lost_) + " lines before this one are lost)\n";
      lost_ = 0;
    }
    kept_.size() + text.size() <= kMostKept ? (void)kept_.append(text) : (void)++lost_;
    WriteKept();
  }
  void flush() override {}
  void set_pattern(const std::string& pattern) override {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    const MutexLock lock(mu_);
    formatter_ = std::move(formatter);
  }

 private:
  static constexpr size_t kMostKept = size_t{64} << 10;
  // A pipe or terminal that takes anything takes so much.
  static constexpr size_t kPiece = 4096;

  bool HasRoom() const {
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    return file_ || (::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0);
  }
  void WriteKept() REQUIRES(mu_) {
    size_t written = 0;
    while (written < kept_.size() && HasRoom()) {
      const size_t piece = std::min(kPiece, kept_.size() - written);
      const ssize_t put = ::write(STDERR_FILENO, kept_.data() + written, piece);
      if (put <= 0) break;
      written += static_cast<size_t>(put);
    }
    kept_.erase(0, written);
  }

  bool file_ = false;
  Mutex mu_;
  std::unique_ptr<spdlog::formatter> formatter_ GUARDED_BY(mu_) =
      std::make_unique<spdlog::pattern_formatter>();
  std::string kept_ GUARDED_BY(mu_);
  size_t lost_ GUARDED_BY(mu_) = 0;
};

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("shoal", std::make_shared<StderrSink>());
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
