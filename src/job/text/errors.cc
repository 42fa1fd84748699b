#include "job/text/errors.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <tuple>

namespace shoal::job {
namespace {

constexpr size_t kShownErrors = 10;
constexpr size_t kKeptErrors = 1000;
constexpr size_t kLongestWord = 64;

std::string SetLabel(const std::string& argument) {
  std::string text = argument;
  const size_t equals = text.find('=');
  const bool env = text.starts_with("env.") || text.find(".env.") < equals;
  if (env && equals != std::string::npos) text = text.substr(0, equals + 1) + "***";
  if (text.size() > 100) text = text.substr(0, 97) + "...";
  return "--set " + text;
}

std::string Lower(std::string_view word) {
  std::string out;
  for (const char c : word) {
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Edit distance with transpositions (optimal string alignment).
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::string FormatLocation(const std::string& file, const std::vector<std::string>& set,
                           const SourceLocation& place) {
  if (place.set >= 0 && static_cast<size_t>(place.set) < set.size())
    return set[static_cast<size_t>(place.set)];
  if (place.line == 0) return file;
  return file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

Errors::Errors(std::string file, const std::vector<std::string>& overrides)
    : file_(std::move(file)) {
  for (const std::string& argument : overrides) overrides_.push_back(SetLabel(argument));
}

void Errors::Add(const SourceLocation& place, const std::string& path,
                 const std::string& sentence) {
  ++count_;
  if (entries_.size() >= kKeptErrors) return;
  std::string text = FormatLocation(file_, overrides_, place) + ": ";
  if (!path.empty()) text += path + ": ";
  entries_.push_back({place, path, text + sentence});
}

bool Errors::At(const std::string& path) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.path == path; });
}

Status Errors::ToStatus() const {
  if (empty()) return Status::Ok();
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries_) sorted.push_back(&entry);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Entry* a, const Entry* b) {
    const auto key = [](const SourceLocation& p) { return std::tuple(p.set, p.line, p.column); };
    return key(a->place) < key(b->place);
  });
  std::string text;
  for (size_t i = 0; i < sorted.size() && i < kShownErrors; ++i) {
    text += (i > 0 ? "\n" : "") + sorted[i]->text;
  }
  if (count_ > kShownErrors) {
    const size_t more = count_ - kShownErrors;
    text += "\n" + file_ + ": and " + std::to_string(more) +
            (more == 1 ? " more error" : " more errors");
  }
  return InvalidArgument(std::move(text));
}

// Ignores case; of several candidates with the same distance the first is returned.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string lower = Lower(word);
  // Allows one wrong letter in three, but not every letter of a short word.
  size_t best = std::max<size_t>(1, (word.size() + 1) / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const std::string other = Lower(candidate);
    size_t distance = Distance(lower, other);
    // A missing or extra ending ("mem" for "memory") counts less than the same number of wrong
    // letters.
    const bool prefix = lower.size() >= 3 && other.size() >= 3 &&
                        (other.starts_with(lower) || lower.starts_with(other));
    if (prefix) distance = std::min<size_t>(distance, 1);
    if (distance < best && distance < other.size()) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? std::string() : "; did you mean '" + nearest + "'?";
}

}  // namespace shoal::job
