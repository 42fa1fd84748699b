#include "cli/jobs/time_argument.h"

#include <ctime>
#include <optional>
#include <regex>

#include "job/text/units.h"

namespace shoal::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr int kFirstYear = 1970;
constexpr int kLastYear = 9999;
constexpr size_t kLongest = 64;

// Numbers of the groups of TimeSyntax, 0 for one that is missing.
int Number(const std::smatch& match, int group) {
  return match[group].matched ? std::stoi(match[group].str()) : 0;
}

const std::regex& TimeSyntax() {
  // 1 date, 2–4 its numbers; 5 time, 6–7 hour and minute, 8 second, 9 fraction; 10 zone, 11–13.
  static const std::regex syntax(
      R"((?:((\d{4})-(\d\d)-(\d\d)))?[T ]?((\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,6})\d{0,3})?)?)?)"
      R"((Z|([+-])(\d\d):?(\d\d))?)");
  return syntax;
}

std::optional<WallTime> Civil(const std::smatch& match, WallTime now) {
  const time_t today = std::chrono::duration_cast<seconds>(now.time_since_epoch()).count();
  std::tm civil{};
  localtime_r(&today, &civil);
  const bool dated = match[1].matched;
  if (dated) {
    civil.tm_year = Number(match, 2) - 1900;
    civil.tm_mon = Number(match, 3) - 1;
    civil.tm_mday = Number(match, 4);
  }
  civil.tm_hour = Number(match, 6);
  civil.tm_min = Number(match, 7);
  civil.tm_sec = Number(match, 8);
  const std::tm asked = civil;
  if (civil.tm_hour > 23 || civil.tm_min > 59 || civil.tm_sec > 59) return std::nullopt;
  if (civil.tm_year + 1900 < kFirstYear || civil.tm_year + 1900 > kLastYear) return std::nullopt;
  const bool zoned = match[10].matched;
  civil.tm_isdst = -1;
  time_t at = zoned ? timegm(&civil) : mktime(&civil);
  // The 31st of a month that has 30 days became the 1st of the next one.
  if (civil.tm_mon != asked.tm_mon || civil.tm_mday != asked.tm_mday) return std::nullopt;
  if (match[11].matched) {
    const int offset = (Number(match, 12) * 60 + Number(match, 13)) * 60;
    at += match[11].str() == "+" ? -offset : offset;
  }
  std::string fraction = match[9].matched ? match[9].str() : "0";
  fraction.resize(6, '0');
  return WallTime(seconds(at)) + microseconds(std::stoi(fraction));
}

}  // namespace

Result<WallTime> ParseTimeArgument(const std::string& option, const std::string& text,
                                   WallTime now) {
  if (const auto ago = job::ParseDurationMs(text)) return now - std::chrono::milliseconds(*ago);
  std::smatch match;
  const bool form = text.size() <= kLongest && std::regex_match(text, match, TimeSyntax()) &&
                    (match[1].matched || match[5].matched);
  if (form) {
    if (const auto time = Civil(match, now)) return *time;
  }
  return InvalidArgument("got " + option + " " + text.substr(0, kLongest) +
                         ", expected how long ago, such as 10m or 2h, or a time, such as 09:30, "
                         "\"2026-11-25 09:30\" or 2026-11-25T09:30:15Z");
}

}  // namespace shoal::cli
