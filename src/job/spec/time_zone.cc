#include "job/spec/time_zone.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/file.h"
#include "job/spec/schedule.h"

namespace shoal::job {
namespace {

constexpr size_t kMaxZoneBytes = size_t{1} << 20;
constexpr size_t kHeaderBytes = 44;
constexpr size_t kMaxTransitions = 100'000;
constexpr int64_t kDay = 86'400;
constexpr int64_t kMostOffset = 26 * 3600;  // RFC 8536: less than this

// Big-endian integers of a file.
class ZoneReader {
 public:
  explicit ZoneReader(std::string_view bytes) : bytes_(bytes) {}

  bool Skip(size_t count) {
    if (count > bytes_.size()) return false;
    bytes_.remove_prefix(count);
    return true;
  }
  std::optional<int64_t> Integer(size_t size) {
    if (size > bytes_.size()) return std::nullopt;
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<uint8_t>(bytes_[i]);
    bytes_.remove_prefix(size);
    if (size == 4) return static_cast<int32_t>(value);
    if (size == 1) return static_cast<uint8_t>(value);
    return static_cast<int64_t>(value);
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// The counts of a header.
struct ZoneHeader {
  size_t utc = 0;
  size_t standard = 0;
  size_t leaps = 0;
  size_t times = 0;
  size_t types = 0;
  size_t characters = 0;

  // Bytes of the data block that follows; `word`: of a time.
  size_t DataBytes(size_t word) const {
    return times * word + times + types * 6 + characters + leaps * (word + 4) + standard + utc;
  }
};

Status Damaged(const std::string& what) {
  return InvalidArgument("the file of the time zone " + what);
}

Result<ZoneHeader> ReadHeader(ZoneReader* reader) {
  const std::string_view bytes = reader->rest();
  if (bytes.size() < kHeaderBytes || !bytes.starts_with("TZif"))
    return Damaged("does not begin as RFC 8536 says");
  if (bytes[4] < '2') return Damaged("has version 1, expected 2 or a newer one");
  (void)reader->Skip(20);
  ZoneHeader header;
  for (size_t* const count : {&header.utc, &header.standard, &header.leaps, &header.times,
                              &header.types, &header.characters}) {
    const int64_t value = reader->Integer(4).value_or(-1);
    if (value < 0 || value > static_cast<int64_t>(kMaxTransitions))
      return Damaged("has more entries than any zone");
    *count = static_cast<size_t>(value);
  }
  if (header.types == 0) return Damaged("has no type of local time");
  return header;
}

}  // namespace

int64_t DaysOf(int64_t year, int month, int day) {
  // Howard Hinnant's days_from_civil.
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t of_era = year - era * 400;
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
}

CivilDate DateOf(int64_t days) {
  days += 719'468;
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const int64_t of_era = days - era * 146'097;
  const int64_t year = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const int64_t shifted = (5 * of_year + 2) / 153;
  const int day = static_cast<int>(of_year - (153 * shifted + 2) / 5 + 1);
  const int month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  return {year + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

int WeekdayOf(int64_t days) {
  return static_cast<int>(days >= -4 ? (days + 4) % 7 : (days + 5) % 7 + 6);
}

// ---- The rule after the last transition
// -----------------------------------------------------------

// "CET-1CEST,M3.5.0,M10.5.0/3"
class TimeZone::FooterParser {
 public:
  explicit FooterParser(std::string_view text) : text_(text) {}

  std::optional<Footer> Parse() {
    Footer footer;
    if (text_.empty()) return footer;  // the last offset stays
    if (!Name() || !Offset(&footer.standard)) return std::nullopt;
    footer.standard = -footer.standard;
    footer.known = true;
    if (text_.empty()) return footer;
    if (!Name()) return std::nullopt;
    footer.daylight = true;
    footer.summer = footer.standard + 3600;
    if (!text_.starts_with(',')) {
      if (!Offset(&footer.summer)) return std::nullopt;
      footer.summer = -footer.summer;
    }
    if (!Take(',') || !OneRule(&footer.start) || !Take(',') || !OneRule(&footer.end))
      return std::nullopt;
    return text_.empty() ? std::optional(footer) : std::nullopt;
  }

 private:
  bool Take(char wanted) {
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool Name() {
    const bool quoted = Take('<');
    size_t length = 0;
    while (length < text_.size() &&
           (quoted ? text_[length] != '>'
                   : std::isalpha(static_cast<unsigned char>(text_[length])) != 0))
      ++length;
    if (length == 0 || (quoted && length == text_.size())) return false;
    text_.remove_prefix(length);
    return !quoted || Take('>');
  }
  bool Number(int64_t most, int64_t* value) {
    size_t length = 0;
    *value = 0;
    while (length < text_.size() && length < 4 &&
           std::isdigit(static_cast<unsigned char>(text_[length])) != 0)
      *value = *value * 10 + (text_[length++] - '0');
    text_.remove_prefix(length);
    return length > 0 && *value <= most;
  }
  // [+-]HH[:MM[:SS]]
  bool Offset(int64_t* seconds) {
    const bool negative = Take('-');
    if (!negative) (void)Take('+');
    int64_t hours = 0;
    int64_t minutes = 0;
    int64_t rest = 0;
    if (!Number(167, &hours)) return false;
    if (Take(':') && (!Number(59, &minutes) || (Take(':') && !Number(59, &rest)))) return false;
    *seconds = (hours * 3600 + minutes * 60 + rest) * (negative ? -1 : 1);
    return true;
  }
  bool OneRule(Rule* rule) {
    int64_t day = 0;
    if (Take('M')) {
      int64_t month = 0;
      int64_t week = 0;
      if (!Number(12, &month) || !Take('.') || !Number(5, &week) || !Take('.') || !Number(6, &day))
        return false;
      if (month < 1 || week < 1) return false;
      rule->month = static_cast<int>(month);
      rule->week = static_cast<int>(week);
    } else {
      rule->kind = Take('J') ? Rule::Kind::kJulian : Rule::Kind::kDay;
      if (!Number(365, &day) || (rule->kind == Rule::Kind::kJulian && day == 0)) return false;
    }
    rule->day = static_cast<int>(day);
    return !Take('/') || Offset(&rule->seconds);
  }

  std::string_view text_;
};

// Days since the epoch on which the rule falls in the year.
int64_t TimeZone::DayOf(const Rule& rule, int64_t year) {
  const int64_t begin = DaysOf(year, 1, 1);
  if (rule.kind == Rule::Kind::kDay) return begin + rule.day;
  if (rule.kind == Rule::Kind::kJulian) {  // from 1, without the 29th of February
    const bool leap = DaysOf(year, 3, 1) - begin == 60;
    return begin + rule.day - (leap && rule.day >= 60 ? 0 : 1);
  }
  const int64_t first = DaysOf(year, rule.month, 1);
  const int64_t next = rule.month == 12 ? DaysOf(year + 1, 1, 1) : DaysOf(year, rule.month + 1, 1);
  int64_t day = first + (rule.day - WeekdayOf(first) + 7) % 7 + 7 * (rule.week - 1);
  while (day >= next) day -= 7;
  return day;
}

int64_t TimeZone::OffsetByFooter(int64_t time) const {
  if (!footer_.daylight) return footer_.standard;
  const int64_t local = time + footer_.standard;
  const int64_t year = DateOf(local >= 0 ? local / kDay : (local - kDay + 1) / kDay).year;
  // The last change at or before `time`; rules may reach into the neighbouring years.
  int64_t latest = INT64_MIN;
  int64_t offset = footer_.standard;
  for (int64_t one = year - 1; one <= year + 1; ++one) {
    const int64_t start =
        DayOf(footer_.start, one) * kDay + footer_.start.seconds - footer_.standard;
    const int64_t end = DayOf(footer_.end, one) * kDay + footer_.end.seconds - footer_.summer;
    if (start <= time && start >= latest) {
      latest = start;
      offset = footer_.summer;
    }
    if (end <= time && end > latest) {
      latest = end;
      offset = footer_.standard;
    }
  }
  return offset;
}

// ---- Files
// ----------------------------------------------------------------------------------------

Result<TimeZone> TimeZone::Parse(std::string_view bytes) {
  ZoneReader reader(bytes);
  TRY_ASSIGN(const ZoneHeader old, ReadHeader(&reader));
  if (!reader.Skip(old.DataBytes(4))) return Damaged("ends too early");
  TRY_ASSIGN(const ZoneHeader header, ReadHeader(&reader));
  if (reader.rest().size() < header.DataBytes(8)) return Damaged("ends too early");
  TimeZone zone;
  zone.transitions_.resize(header.times);
  for (Transition& one : zone.transitions_) one.time = *reader.Integer(8);
  std::vector<size_t> types(header.times);
  for (size_t& type : types) type = static_cast<size_t>(*reader.Integer(1));
  std::vector<int64_t> offsets(header.types);
  for (int64_t& offset : offsets) {
    offset = *reader.Integer(4);
    (void)reader.Skip(2);
    if (offset <= -kMostOffset || offset >= kMostOffset) return Damaged("has an offset of days");
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] >= offsets.size()) return Damaged("names a type that it does not have");
    if (i > 0 && zone.transitions_[i].time <= zone.transitions_[i - 1].time)
      return Damaged("has transitions that do not ascend");
    zone.transitions_[i].offset = offsets[types[i]];
  }
  zone.first_offset_ = offsets[0];
  (void)reader.Skip(header.characters + header.leaps * 12 + header.standard + header.utc);
  std::string_view footer = reader.rest();
  if (!footer.starts_with('\n') || footer.size() < 2 || footer.back() != '\n')
    return Damaged("has no footer");
  footer = footer.substr(1, footer.size() - 2);
  const auto parsed = FooterParser(footer).Parse();
  if (!parsed) return Damaged("has a footer that is no rule");
  zone.footer_ = *parsed;
  return zone;
}

Result<TimeZone> TimeZone::Load(const std::string& name, const std::filesystem::path& folder) {
  TRY(CheckTimeZone(name));
  const auto bytes = ReadFile(folder / name, kMaxZoneBytes);
  if (!bytes.ok() && name == "UTC") return TimeZone();
  if (!bytes.ok())
    return NotFound("the time zone " + name + " is not known on this machine, which has no file " +
                    (folder / name).string());
  return Parse(*bytes);
}

int64_t TimeZone::OffsetAt(int64_t time) const {
  const auto after = std::ranges::upper_bound(transitions_, time, {}, &Transition::time);
  if (after == transitions_.end() && footer_.known) return OffsetByFooter(time);
  return after == transitions_.begin() ? first_offset_ : std::prev(after)->offset;
}

int64_t TimeZone::TimeOf(int64_t local, bool* exists) const {
  int64_t before = local - kMostOffset;
  int64_t after = local + kMostOffset;
  std::optional<int64_t> time;
  // The offset then is one of those around it, or in between in a zone that changed twice.
  for (const int64_t around : {before, local - kDay / 2, local, local + kDay / 2, after}) {
    const int64_t candidate = local - OffsetAt(around);
    if (candidate + OffsetAt(candidate) == local && (!time || candidate < *time)) time = candidate;
  }
  if (exists != nullptr) *exists = time.has_value();
  if (time) return *time;
  // The first moment whose local time is later.
  while (before + 1 < after) {
    const int64_t middle = before + (after - before) / 2;
    (middle + OffsetAt(middle) < local ? before : after) = middle;
  }
  return after;
}

}  // namespace shoal::job
