#include "host/files/ignore_rules.h"

#include <cctype>
#include <optional>

namespace shoal::host {
namespace {

// A "[…]" of a pattern: whether it has this character. `at` stands behind the bracket and is moved
// behind its end; nothing if it has no end.
class CharacterClass {
 public:
  CharacterClass(std::string_view pattern, size_t at) : pattern_(pattern), at_(at) {}
  size_t end() const { return at_; }

  std::optional<bool> Has(unsigned char c) {
    bool negated = false;
    if (at_ < pattern_.size() && (pattern_[at_] == '!' || pattern_[at_] == '^')) {
      negated = true;
      ++at_;
    }
    bool matched = false;
    for (bool first = true; first || Peek() != ']'; first = false) {
      if (at_ >= pattern_.size()) return std::nullopt;
      if (!Item(c, &matched)) return std::nullopt;
      if (at_ >= pattern_.size()) return std::nullopt;
    }
    ++at_;
    return matched != negated;
  }

 private:
  char Peek() const { return at_ < pattern_.size() ? pattern_[at_] : '\0'; }

  // One character, range or [:class:]. False if the pattern ends within it or a class is unknown.
  bool Item(unsigned char c, bool* matched) {
    if (pattern_.substr(at_, 2) == "[:") {
      const size_t close = pattern_.find(']', at_ + 2);
      if (close == std::string_view::npos) return false;
      if (close >= at_ + 3 && pattern_[close - 1] == ':') {
        const std::string_view name = pattern_.substr(at_ + 2, close - 1 - (at_ + 2));
        at_ = close + 1;
        return Named(name, c, matched);
      }
    }
    unsigned char low = 0;
    if (!One(&low)) return false;
    unsigned char high = low;
    if (Peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
      ++at_;
      if (!One(&high)) return false;
    }
    *matched = *matched || (low <= c && c <= high);
    return true;
  }

  bool One(unsigned char* c) {
    if (Peek() == '\\') ++at_;
    if (at_ >= pattern_.size()) return false;
    *c = static_cast<unsigned char>(pattern_[at_++]);
    return true;
  }

  static bool Named(std::string_view name, unsigned char c, bool* matched) {
    struct Class {
      std::string_view name;
      int (*has)(int);
    };
    static constexpr Class kClasses[] = {
        {"alnum", std::isalnum}, {"alpha", std::isalpha}, {"blank", std::isblank},
        {"cntrl", std::iscntrl}, {"digit", std::isdigit}, {"graph", std::isgraph},
        {"lower", std::islower}, {"print", std::isprint}, {"punct", std::ispunct},
        {"space", std::isspace}, {"upper", std::isupper}, {"xdigit", std::isxdigit}};
    for (const Class& one : kClasses) {
      if (one.name != name) continue;
      *matched = *matched || (c < 0x80 && one.has(c) != 0);
      return true;
    }
    return false;
  }

  std::string_view pattern_;
  size_t at_;
};

// One match of a pattern; recursive descent over the pattern.
class Glob {
 public:
  Glob(std::string_view pattern, std::string_view text, bool by_parts)
      : pattern_(pattern), text_(text), by_parts_(by_parts) {}

  bool From(size_t p, size_t t) {
    for (; p < pattern_.size(); ++t) {
      const char c = pattern_[p];
      if (c == '*') return Star(p, t);
      if (t >= text_.size()) return false;
      if (c == '?') {
        if (by_parts_ && text_[t] == '/') return false;
        ++p;
      } else if (c == '[') {
        CharacterClass set(pattern_, p + 1);
        const auto has = set.Has(static_cast<unsigned char>(text_[t]));
        if (!has || !*has || (by_parts_ && text_[t] == '/')) return false;
        p = set.end();
      } else {
        if (c == '\\' && ++p >= pattern_.size()) return false;
        if (pattern_[p++] != text_[t]) return false;
      }
    }
    return t == text_.size();
  }

 private:
  bool Star(size_t p, size_t t) {
    // What failed from here once fails again: keeps many stars from being tried in all
    // combinations.
    const size_t key = p * (text_.size() + 1) + t;
    if (failed_.empty()) failed_.resize((pattern_.size() + 1) * (text_.size() + 1));
    if (failed_[key]) return false;
    const size_t begin = p;
    while (p < pattern_.size() && pattern_[p] == '*') ++p;
    const bool parts_before = begin == 0 || pattern_[begin - 1] == '/';
    const bool slash_after = pattern_.substr(p, 1) == "/" || pattern_.substr(p, 2) == "\\/";
    const bool double_star = p - begin >= 2;
    bool any_depth = !by_parts_;
    if (by_parts_ && double_star && parts_before && (p == pattern_.size() || slash_after)) {
      if (pattern_.substr(p, 1) == "/" && From(p + 1, t)) return true;
      any_depth = true;
    }
    for (;; ++t) {
      if (From(p, t)) return true;
      if (t >= text_.size() || (!any_depth && text_[t] == '/')) break;
    }
    failed_[key] = true;
    return false;
  }

  const std::string_view pattern_;
  const std::string_view text_;
  const bool by_parts_;
  std::vector<bool> failed_;
};

// Without the spaces at its end, unless a backslash stands before them.
std::string_view TrimEnd(std::string_view line) {
  size_t keep = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      if (++i >= line.size()) return line;
      keep = i + 1;
    } else if (line[i] != ' ') {
      keep = i + 1;
    }
  }
  return line.substr(0, keep);
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view text, bool by_parts) {
  return Glob(pattern, text, by_parts).From(0, 0);
}

bool IgnoreRules::Add(std::string_view text, std::string_view base) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  bool all = true;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.ends_with('\r') && end != std::string_view::npos) line.remove_suffix(1);
    if (line.size() > kMaxIgnoreLine || rules_.size() >= kMaxIgnoreRules) {
      all = false;
    } else {
      AddLine(line, base);
    }
  }
  return all;
}

void IgnoreRules::AddLine(std::string_view line, std::string_view base) {
  if (line.empty() || line[0] == '#') return;
  line = TrimEnd(line);
  Rule rule;
  rule.base = base;
  if (line.starts_with('!')) {
    rule.negated = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    rule.directories_only = true;
    line.remove_suffix(1);
  }
  rule.name_only = line.find('/') == std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return;
  rule.pattern = line;
  rules_.push_back(std::move(rule));
}

bool IgnoreRules::Matches(const Rule& rule, std::string_view path, bool is_directory) {
  if (rule.directories_only && !is_directory) return false;
  if (!rule.base.empty()) {
    if (!path.starts_with(rule.base) || path.size() <= rule.base.size() ||
        path[rule.base.size()] != '/')
      return false;
    path.remove_prefix(rule.base.size() + 1);
  }
  if (!rule.name_only) return GlobMatches(rule.pattern, path, true);
  const size_t slash = path.rfind('/');
  return GlobMatches(rule.pattern, slash == std::string_view::npos ? path : path.substr(slash + 1),
                     false);
}

bool IgnoreRules::Ignored(std::string_view path, bool is_directory) const {
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (Matches(*rule, path, is_directory)) return !rule->negated;
  }
  return false;
}

}  // namespace shoal::host
