#include "controller/files/line_pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <cstring>
#include <utility>

namespace shoal::controller {
namespace {

constexpr int64_t kMemory = int64_t{8} << 20;  // of automata; beyond it RE2 is slower, not wrong
constexpr size_t kShortestLiteral = 2;
constexpr std::string_view kSpecial = "\\^$.[]|()?*+{}";

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

RE2::Options OptionsOf(bool ignore_case) {
  RE2::Options options(RE2::Quiet);
  options.set_never_nl(true);
  options.set_case_sensitive(!ignore_case);
  options.set_max_mem(kMemory);
  return options;
}

// Whether the text means the same in the middle of a block as alone: its anchors are those of
// lines. `\A`, `\z` and flags such as (?-m) are the exceptions.
bool WorksInBlocks(std::string_view pattern) {
  return pattern.find("(?") == std::string_view::npos &&
         pattern.find("\\A") == std::string_view::npos &&
         pattern.find("\\z") == std::string_view::npos;
}

std::string Excerpt(std::string_view pattern) {
  std::string text(pattern.substr(0, 60));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return pattern.size() > 60 ? text + "…" : text;
}

}  // namespace

std::string RequiredLiteral(std::string_view pattern) {
  if (pattern.find('|') != std::string_view::npos || pattern.find("(?") != std::string_view::npos)
    return "";
  std::string longest;
  std::string run;
  const auto end_run = [&] {
    if (run.size() > longest.size()) longest = run;
    run.clear();
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool quoted = c == '\\' && i + 1 < pattern.size() &&
                        kSpecial.find(pattern[i + 1]) != std::string_view::npos;
    // Groups, classes and escapes of other kinds end the search: their contents are not looked at.
    if (c == '(' || c == '[' || c == ')' || (c == '\\' && !quoted)) break;
    if (quoted || kSpecial.find(c) == std::string_view::npos) {
      run += quoted ? pattern[++i] : c;
      continue;
    }
    // A repeated character may be missing, and it ends the text in any case. A UTF-8 character is
    // repeated as a whole.
    if (c == '?' || c == '*' || c == '{') {
      while (!run.empty() && (static_cast<unsigned char>(run.back()) & 0xc0) == 0x80)
        run.pop_back();
      if (!run.empty()) run.pop_back();
      if (c == '{') {
        end_run();
        break;
      }
    }
    end_run();
  }
  end_run();
  return longest.size() < kShortestLiteral ? "" : longest;
}

struct LinePattern::Compiled {
  Compiled(const std::string& text, bool ignore_case, bool blocks)
      : re(blocks ? "(?m:" + text + ")" : text, OptionsOf(ignore_case)), in_blocks(blocks) {}
  RE2 re;
  bool in_blocks;
  bool only_literal = false;
  std::string literal;
};

LinePattern::LinePattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
LinePattern::LinePattern(LinePattern&&) noexcept = default;
LinePattern& LinePattern::operator=(LinePattern&&) noexcept = default;
LinePattern::~LinePattern() = default;

Result<LinePattern> LinePattern::Compile(std::string_view text, bool ignore_case) {
  if (text.size() > kLongest)
    return InvalidArgument(fmt::format(
        "the regular expression has {} bytes, at most {} are allowed", text.size(), kLongest));
  if (text.find('\n') != std::string_view::npos)
    return InvalidArgument(
        "the regular expression has a line feed; it is searched in each line by itself");
  const RE2 alone(Piece(text), OptionsOf(ignore_case));
  if (!alone.ok()) {
    const std::string part =
        alone.error_arg().empty() ? "" : " at `" + Excerpt(alone.error_arg()) + "`";
    return InvalidArgument(
        fmt::format("the regular expression `{}` is not valid: {}{}; its syntax is RE2's, and a "
                    "backslash takes "
                    "a character literally, as in `\\[`",
                    Excerpt(text), alone.error(), part));
  }
  auto compiled = std::make_unique<Compiled>(std::string(text), ignore_case, WorksInBlocks(text));
  if (!compiled->re.ok())
    return InvalidArgument("the regular expression `" + Excerpt(text) +
                           "` is not valid: " + compiled->re.error());
  if (!ignore_case) compiled->literal = RequiredLiteral(text);
  compiled->only_literal = !compiled->literal.empty() && compiled->literal == text;
  return LinePattern(std::move(compiled));
}

const std::string& LinePattern::literal() const { return compiled_->literal; }

bool LinePattern::Matches(std::string_view line) const {
  if (compiled_->only_literal) return line.find(compiled_->literal) != std::string_view::npos;
  return compiled_->re.Match(Piece(line), 0, line.size(), RE2::UNANCHORED, nullptr, 0);
}

void LinePattern::FindLines(
    std::string_view text,
    const std::function<bool(size_t offset, std::string_view line)>& on_line) const {
  const Compiled& c = *compiled_;
  size_t at = 0;
  while (at < text.size()) {
    size_t hit = at;
    if (!c.literal.empty()) {
      const void* const found =
          ::memmem(text.data() + at, text.size() - at, c.literal.data(), c.literal.size());
      if (found == nullptr) return;
      hit = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    } else if (c.in_blocks) {
      re2::StringPiece match;
      if (!c.re.Match(Piece(text), at, text.size(), RE2::UNANCHORED, &match, 1)) return;
      hit = static_cast<size_t>(match.data() - text.data());
    }
    // An empty match behind the last line feed is in no line.
    if (hit >= text.size() && text.back() == '\n') return;
    const void* const before = hit == at ? nullptr : ::memrchr(text.data() + at, '\n', hit - at);
    const size_t begin =
        before == nullptr ? at
                          : static_cast<size_t>(static_cast<const char*>(before) - text.data()) + 1;
    size_t end = text.find('\n', hit);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view line = text.substr(begin, end - begin);
    const bool sure = c.only_literal || (c.literal.empty() && c.in_blocks);
    if ((sure || Matches(line)) && !on_line(begin, line)) return;
    at = end + 1;
  }
}

}  // namespace shoal::controller
