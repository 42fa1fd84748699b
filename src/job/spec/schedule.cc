#include "job/spec/schedule.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include "job/text/units.h"

namespace shoal::job {
namespace {

namespace fs = std::filesystem;

constexpr const char* kZones = "/usr/share/zoneinfo";
constexpr size_t kLongestZone = 64;

struct CronField {
  const char* name;
  int least;
  int most;
  const char* names;  // three letters each, for `least` and what follows; "": numbers only
};
constexpr std::array<CronField, 5> kCronFields = {
    {{"minute", 0, 59, ""},
     {"hour", 0, 23, ""},
     {"day of the month", 1, 31, ""},
     {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
     {"day of the week", 0, 7, "sunmontuewedthufrisat"}}};

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Status Wrong(const CronField& field, const std::string& got, const std::string& expected) {
  return InvalidArgument("got '" + got + "' as the " + field.name + ", expected " + expected);
}

std::string RangeOf(const CronField& field) {
  return "numbers from " + std::to_string(field.least) + " to " + std::to_string(field.most) +
         (*field.names != 0 ? " or names of three letters" : "");
}

std::optional<int> Number(const CronField& field, const std::string& word) {
  if (word.size() == 3 && std::isalpha(static_cast<unsigned char>(word[0])) != 0) {
    std::string lower;
    for (const char c : word)
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const std::string names = field.names;
    for (size_t at = 0; at < names.size(); at += 3) {
      if (names.compare(at, 3, lower) == 0) return field.least + static_cast<int>(at / 3);
    }
    return std::nullopt;
  }
  const bool digits =
      !word.empty() && word.size() <= 2 &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!digits) return std::nullopt;
  const int number = std::stoi(word);
  if (number < field.least || number > field.most) return std::nullopt;
  return number;
}

// Checks one entry of a list: "*", "5", "1-5", with "/STEP" after "*" or a range. Returns its
// lowest number.
Result<int> CheckEntry(const CronField& field, const std::string& entry) {
  const std::vector<std::string> halves = Split(entry, '/');
  const std::vector<std::string> ends = Split(halves[0], '-');
  if (halves.size() > 2 || ends.size() > 2)
    return Wrong(field, entry, "*, NUMBER, FIRST-LAST, or * or a range with /STEP");
  int first = field.least;
  int last = field.most;
  if (halves[0] != "*") {
    const auto low = Number(field, ends[0]);
    const auto high = Number(field, ends.back());
    if (!low || !high) return Wrong(field, entry, RangeOf(field));
    first = *low;
    last = *high;
    if (first > last)
      return Wrong(field, entry, "a range that goes up; two ranges make one that goes round");
  }
  if (halves.size() == 1) return first;
  if (halves[0] != "*" && ends.size() == 1)
    return Wrong(field, entry,
                 "a step behind * or a range: " + ends[0] + "-" + std::to_string(field.most) + "/" +
                     halves[1]);
  const auto step = ParseInteger(halves[1]);
  if (!step || *step < 1 || *step > field.most)
    return Wrong(field, entry, "a step from 1 to " + std::to_string(field.most));
  return first;
}

// The lowest number in the field.
Result<int> CheckField(const CronField& field, const std::string& text) {
  int least = field.most;
  for (const std::string& entry : Split(text, ',')) {
    TRY_ASSIGN(const int first, CheckEntry(field, entry));
    least = std::min(least, first);
  }
  return least;
}

// The numbers of a checked field.
std::vector<int> NumbersOf(const CronField& field, const std::string& text) {
  std::vector<int> numbers;
  for (const std::string& entry : Split(text, ',')) {
    const std::vector<std::string> halves = Split(entry, '/');
    int first = field.least;
    int last = field.most;
    if (halves[0] != "*") {
      const std::vector<std::string> ends = Split(halves[0], '-');
      first = Number(field, ends[0]).value_or(first);
      last = Number(field, ends.back()).value_or(last);
    }
    const int step = halves.size() > 1 ? std::stoi(halves[1]) : 1;
    for (int number = first; number <= last; number += step) numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::string> FieldsOf(const std::string& cron) {
  std::istringstream words(cron);
  std::vector<std::string> fields;
  for (std::string word; words >> word;) fields.push_back(word);
  return fields;
}

}  // namespace

Result<CronSets> ParseCron(const std::string& cron) {
  TRY(CheckCron(cron));
  const std::vector<std::string> fields = FieldsOf(cron);
  CronSets sets;
  for (size_t i = 0; i < fields.size(); ++i) {
    sets.fields[i] = NumbersOf(kCronFields[i], fields[i]);
    sets.starred[i] = fields[i].starts_with('*');
  }
  return sets;
}

Status CheckCron(const std::string& cron) {
  const std::vector<std::string> fields = FieldsOf(cron);
  if (fields.size() == 1 && fields[0][0] == '@')
    return InvalidArgument("got '" + fields[0] +
                           "', expected five fields: @daily is 0 0 * * *, @hourly is 0 * * * *");
  if (fields.size() != kCronFields.size())
    return InvalidArgument(
        "got " + std::to_string(fields.size()) +
        " fields, expected five: minute, hour, day of the month, month, day of the week" +
        (fields.size() == 6 ? "; there are no seconds and no years" : ""));
  int day = 1;
  for (size_t i = 0; i < fields.size(); ++i) {
    TRY_ASSIGN(const int least, CheckField(kCronFields[i], fields[i]));
    if (i == 2) day = least;
  }
  constexpr std::array<int, 12> kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (fields[4] != "*") return Status::Ok();  // then either of the two days counts
  for (const int month : NumbersOf(kCronFields[3], fields[3])) {
    if (day <= kDays[static_cast<size_t>(month - 1)]) return Status::Ok();
  }
  return Wrong(kCronFields[2], fields[2],
               "a day that one of the months '" + fields[3] + "' has; it would never run");
}

Status CheckTimeZone(const std::string& zone) {
  bool fine = !zone.empty() && zone.size() <= kLongestZone &&
              std::isalpha(static_cast<unsigned char>(zone[0])) != 0 && zone.back() != '/' &&
              zone.find("//") == std::string::npos &&
              std::all_of(zone.begin(), zone.end(), [](unsigned char c) {
                return std::isalnum(c) != 0 || c == '/' || c == '_' || c == '-' || c == '+';
              });
  std::error_code error;
  if (fine && zone != "UTC" && fs::is_directory(kZones, error))
    fine = fs::is_regular_file(fs::path(kZones) / zone, error);
  if (fine) return Status::Ok();
  return InvalidArgument("got '" + zone +
                         "', expected a name of the IANA's list of time zones, such as UTC or "
                         "Europe/Berlin");
}

}  // namespace shoal::job
