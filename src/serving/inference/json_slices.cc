#include "serving/inference/json_slices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace shoal::serving {
namespace {

constexpr size_t kMaxDepth = 64;

// Walks over one JSON text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void SkipBlanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  bool Take(char c) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool AtEnd() {
    SkipBlanks();
    return at_ == text_.size();
  }
  Status Expected(std::string_view what) const {
    return InvalidArgument(
        fmt::format("the body is not the JSON that is expected: at byte {} {}", at_, what));
  }

  // A value up to the comma or bracket behind it. Empty if there is none.
  std::string_view Value() {
    SkipBlanks();
    const size_t begin = at_;
    size_t depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        if (!SkipString()) return {};
        continue;
      }
      if (c == '{' || c == '[') {
        if (++depth > kMaxDepth) return {};
      } else if (c == '}' || c == ']') {
        if (depth == 0) break;
        --depth;
      } else if (c == ',' && depth == 0) {
        break;
      }
    }
    if (depth > 0) return {};
    size_t end = at_;
    while (end > begin && (text_[end - 1] == ' ' || text_[end - 1] == '\n' ||
                           text_[end - 1] == '\r' || text_[end - 1] == '\t'))
      --end;
    return text_.substr(begin, end - begin);
  }

  // The string at the cursor with its quotes; empty if there is none.
  std::string_view String() {
    SkipBlanks();
    const size_t begin = at_;
    if (at_ == text_.size() || text_[at_] != '"' || !SkipString()) return {};
    ++at_;
    return text_.substr(begin, at_ - begin);
  }

 private:
  // From the quote to the closing one.
  bool SkipString() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        return true;
      }
    }
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
};

bool IsNumber(std::string_view slice) {
  return !slice.empty() && (slice.front() == '-' || (slice.front() >= '0' && slice.front() <= '9'));
}

// Plain digits with a point need no parser; others, with exponents too, are given to one.
bool IsPlainNumber(std::string_view slice) {
  size_t at = slice.front() == '-' ? 1 : 0;
  const size_t begin = at;
  while (at < slice.size() && slice[at] >= '0' && slice[at] <= '9') ++at;
  if (at == begin || (slice[begin] == '0' && at > begin + 1)) return false;
  if (at == slice.size()) return true;
  if (slice[at] != '.' || at + 1 == slice.size()) return false;
  return std::all_of(slice.begin() + static_cast<std::ptrdiff_t>(at) + 1, slice.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

bool IsPlainText(std::string_view slice) {
  return slice.size() >= 2 && slice.front() == '"' && slice.back() == '"' &&
         std::all_of(slice.begin() + 1, slice.end() - 1, [](char c) {
           return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80 &&
                  c != '\\' && c != '"';
         });
}

std::string Shown(std::string_view slice) {
  constexpr size_t kShown = 40;
  return slice.size() <= kShown ? std::string(slice) : std::string(slice.substr(0, kShown)) + "…";
}

}  // namespace

Result<JsonMembers> MembersOf(std::string_view text) {
  Scanner scanner(text);
  if (!scanner.Take('{')) return scanner.Expected("an object begins with {");
  JsonMembers members;
  if (!scanner.Take('}')) {
    for (;;) {
      const std::string_view quoted = scanner.String();
      if (quoted.empty()) return scanner.Expected("a name in quotes is missing or not closed");
      TRY_ASSIGN(std::string name, TextOfSlice(quoted));
      if (!scanner.Take(':')) return scanner.Expected("a colon follows a name");
      const std::string_view value = scanner.Value();
      if (value.empty()) return scanner.Expected("a value is missing or not closed");
      if (FindMember(members, name) != nullptr)
        return InvalidArgument(fmt::format("the body has two fields '{}'", Shown(name)));
      members.emplace_back(std::move(name), value);
      if (scanner.Take(',')) continue;
      if (scanner.Take('}')) break;
      return scanner.Expected("a comma or } follows a value");
    }
  }
  if (!scanner.AtEnd()) return scanner.Expected("the object has ended");
  return members;
}

Result<std::vector<std::string_view>> ElementsOf(std::string_view text, size_t most) {
  Scanner scanner(text);
  if (!scanner.Take('[')) {
    return InvalidArgument(fmt::format("got {}, expected an array", Shown(text)));
  }
  std::vector<std::string_view> elements;
  if (!scanner.Take(']')) {
    for (;;) {
      const std::string_view value = scanner.Value();
      if (value.empty()) return scanner.Expected("a value is missing or not closed");
      if (elements.size() == most) {
        return ResourceExhausted(
            fmt::format("an array has more than {} elements; send smaller batches", most));
      }
      elements.push_back(value);
      if (scanner.Take(',')) continue;
      if (scanner.Take(']')) break;
      return scanner.Expected("a comma or ] follows a value");
    }
  }
  if (!scanner.AtEnd()) return scanner.Expected("the array has ended");
  return elements;
}

const std::string_view* FindMember(const JsonMembers& members, std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

Result<data::TableCell> CellOf(std::string_view slice, std::string* room) {
  using Kind = data::TableCell::Kind;
  if (slice == "null") return data::TableCell();
  if (slice == "true" || slice == "false")
    return data::TableCell{.kind = Kind::kText, .text = slice, .boolean = true};
  if (IsNumber(slice)) {
    const auto parsed =
        IsPlainNumber(slice) ? Result<json::value>(json::value()) : ParseJson(slice);
    if (parsed.ok()) return data::TableCell{.kind = Kind::kParsed, .text = slice};
  }
  if (IsPlainText(slice))
    return data::TableCell{.kind = Kind::kText, .text = slice.substr(1, slice.size() - 2)};
  if (!slice.empty() && slice.front() == '"') {
    TRY_ASSIGN(*room, TextOfSlice(slice));
    return data::TableCell{.kind = Kind::kText, .text = *room};
  }
  return InvalidArgument(
      fmt::format("got {}, expected a number, a string, true, false or null", Shown(slice)));
}

Result<std::string> TextOfSlice(std::string_view slice) {
  if (IsPlainText(slice)) return std::string(slice.substr(1, slice.size() - 2));
  const Result<json::value> parsed = ParseJson(slice);
  if (parsed.ok() && parsed->is_string()) return std::string(parsed->as_string());
  return InvalidArgument(fmt::format("got '{}', expected a string in quotes", Shown(slice)));
}

}  // namespace shoal::serving
