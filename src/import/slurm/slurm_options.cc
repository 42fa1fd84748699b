#include "import/slurm/slurm_options.h"

#include <algorithm>
#include <cctype>

#include "job/spec/job.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

constexpr int64_t kLargestInArray = 4'000'000;  // upper limit of MaxArraySize

// Parses "text/A", "flag", "optional/k": whether the option has a value (after a blank or '=', or
// after '=' only), and its short form.
SlurmOption OptionOf(const ForeignField& field) {
  SlurmOption option;
  option.name = field.name;
  const size_t slash = field.type.find('/');
  if (slash != std::string_view::npos) option.letter = field.type[slash + 1];
  option.value = field.type.starts_with("text");
  option.minor = field.verdict == FieldSupport::kNoted ||
                 (field.verdict == FieldSupport::kHonoured && !field.warned_elsewhere);
  const size_t cut = field.sentence.find("; ");
  if (field.verdict == FieldSupport::kHonoured && field.engine.empty()) {
    option.use = SlurmOptionHandling::kRead;
    return option;
  }
  option.use = field.verdict == FieldSupport::kHonoured ? SlurmOptionHandling::kPassed
                                                        : SlurmOptionHandling::kWarned;
  option.meant = field.sentence.substr(0, cut);
  if (cut != std::string_view::npos) option.instead = field.sentence.substr(cut + 2);
  return option;
}

// All options, from the table of fields; built once.
const std::vector<SlurmOption>& Options() {
  static const std::vector<SlurmOption> options = [] {
    std::vector<SlurmOption> all;
    for (const ForeignField& field : FindFields("Sbatch")) all.push_back(OptionOf(field));
    return all;
  }();
  return options;
}

// The words of an option line without quotes; '#' begins a comment.
std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = 0;
  for (const char c : line) {
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      begun = true;
    } else if (blank) {
      if (begun) words.push_back(word);
      word.clear();
      begun = false;
    } else if (c == '#' && !begun) {
      break;
    } else {
      word += c;
      begun = true;
    }
  }
  if (begun) words.push_back(word);
  return words;
}

// Parses #SBATCH lines.
class OptionLines {
 public:
  explicit OptionLines(Diagnostics* diagnostics) : diagnostics_(diagnostics) {}

  void Read(const std::vector<std::string>& words, int line) {
    place_ = {line, 1};
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      const bool is_long = word.starts_with("--");
      const size_t is = is_long ? word.find('=') : std::string::npos;
      const std::string name = is_long ? word.substr(2, is - 2) : word.substr(0, 2);
      const SlurmOption* option = is_long           ? FindSlurmOption(name)
                                  : word.size() < 2 ? nullptr
                                  : word[0] == '-'  ? ByLetter(word[1])
                                                    : nullptr;
      if (option == nullptr) return Unknown(word, is_long ? name : "");
      std::string value;
      if (is_long && is != std::string::npos) {
        value = word.substr(is + 1);
      } else if (!is_long && word.size() > 2) {
        value = word.substr(word[2] == '=' ? 3 : 2);
      } else if (option->value && i + 1 < words.size()) {
        value = words[++i];
      } else if (option->value) {
        return diagnostics_->AddError(place_, "#SBATCH",
                                      "got " + job::PrintableText(word) + ", expected its value");
      }
      options_[std::string(option->name == "tasks-per-node" ? "ntasks-per-node" : option->name)] = {
          value, place_};
    }
  }

  SlurmOptionValues TakeOptions() { return std::move(options_); }

 private:
  static const SlurmOption* ByLetter(char letter) {
    const auto found = std::ranges::find(Options(), letter, &SlurmOption::letter);
    return found == Options().end() ? nullptr : &*found;
  }

  void Unknown(const std::string& word, const std::string& name) {
    std::vector<std::string> names;
    for (const SlurmOption& option : Options()) names.emplace_back(option.name);
    // The rest of "[your account]", of which a blank made two words.
    const bool placeholder = word.ends_with(']') || word.ends_with('>');
    const std::string meant =
        placeholder ? "; put your own value in the place of […] or <…>, in quotes if it has blanks"
        : name.empty() ? ""
                       : job::DidYouMean(name, names);
    diagnostics_->AddError(
        place_, "#SBATCH",
        "got " + job::PrintableText(word) + ", expected an option of sbatch" + meant);
  }

  Diagnostics* const diagnostics_;
  job::SourceLocation place_;
  SlurmOptionValues options_;
};

std::optional<int64_t> Number(std::string_view text) { return job::ParseInteger(text); }

}  // namespace

const SlurmOption* FindSlurmOption(std::string_view name) {
  const SlurmOption* found = nullptr;
  for (const SlurmOption& option : Options()) {
    if (option.name == name) return &option;
    if (!option.name.starts_with(name) || name.empty()) continue;
    if (found != nullptr) return nullptr;  // ambiguous
    found = &option;
  }
  return found;
}

SlurmOptionValues ReadSbatchLines(std::string_view script, Diagnostics* diagnostics) {
  constexpr std::string_view kMark = "#SBATCH";
  OptionLines lines(diagnostics);
  bool commands = false;
  int number = 0;
  for (size_t at = 0; at < script.size();) {
    const size_t end = std::min(script.find('\n', at), script.size());
    const std::string_view line = script.substr(at, end - at);
    at = end + 1;
    ++number;
    const size_t text = line.find_first_not_of(" \t\r");
    const bool option = line.starts_with(kMark) && line.size() > kMark.size() &&
                        (line[kMark.size()] == ' ' || line[kMark.size()] == '\t');
    if (option && commands) {
      diagnostics->AddLoss({number, 1}, "#SBATCH",
                           "stands behind the first command, where sbatch does not look; not kept",
                           "");
    } else if (option) {
      const std::vector<std::string> words = WordsOf(line.substr(kMark.size()));
      if (!words.empty() && (words[0] == "hetjob" || words[0] == "packjob")) {
        diagnostics->AddError(
            {number, 1}, "#SBATCH",
            "got a heterogeneous job, expected one component; make a role of each, with "
            "roles.NAME.slurm (docs/engines/slurm.md)");
      } else {
        lines.Read(words, number);
      }
    } else if (text != std::string_view::npos && line[text] != '#') {
      commands = true;
    }
  }
  return lines.TakeOptions();
}

std::optional<std::chrono::seconds> ParseSlurmTime(std::string_view text) {
  if (text == "UNLIMITED" || text == "INFINITE" || text == "-1") return std::chrono::seconds(0);
  int64_t days = 0;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto said = Number(text.substr(0, dash));
    if (!said || *said < 0 || *said > 3650) return std::nullopt;
    days = *said;
    text.remove_prefix(dash + 1);
  }
  std::vector<int64_t> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    // Decimal, also with a leading 0.
    std::string_view part = text.substr(at, end - at);
    while (part.size() > 1 && part[0] == '0') part.remove_prefix(1);
    const auto said = Number(part);
    if (!said || *said < 0 || *said > 10'000'000) return std::nullopt;
    parts.push_back(*said);
    at = end + 1;
  }
  if (parts.empty() || parts.size() > 3) return std::nullopt;
  int64_t seconds = 0;
  if (dash != std::string_view::npos) {  // hours, minutes, seconds
    constexpr int64_t kWorth[] = {3600, 60, 1};
    for (size_t i = 0; i < parts.size(); ++i) seconds += parts[i] * kWorth[i];
  } else if (parts.size() == 1) {
    seconds = parts[0] * 60;
  } else {
    for (const int64_t part : parts) seconds = seconds * 60 + part;
  }
  return std::chrono::seconds(days * 86'400 + seconds);
}

std::optional<int64_t> ParseSlurmMemory(std::string_view text) {
  int64_t unit = int64_t{1} << 20;
  if (text.size() > 1 && (text.back() == 'B' || text.back() == 'b')) text.remove_suffix(1);
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text.back())) == 0) {
    const char letter = static_cast<char>(text.back() & ~0x20);
    constexpr std::string_view kLetters = "KMGT";
    const size_t power = kLetters.find(letter);
    if (power == std::string_view::npos) return std::nullopt;
    unit = int64_t{1} << (10 * (power + 1));
    text.remove_suffix(1);
  }
  const auto number = job::ParseNumber(text);
  if (!number || *number < 0) return std::nullopt;
  const double bytes = *number * static_cast<double>(unit);
  if (bytes > static_cast<double>(job::kMaxMemoryBytes)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::optional<std::vector<int64_t>> ParseSlurmArray(std::string_view text, size_t most) {
  text = text.substr(0, text.find('%'));
  std::vector<int64_t> numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    std::string_view part = text.substr(at, end - at);
    at = end + 1;
    if (part.starts_with('[')) part.remove_prefix(1);  // as `squeue` prints them
    if (part.ends_with(']')) part.remove_suffix(1);
    const size_t colon = part.find(':');
    const auto step = colon == std::string_view::npos ? std::optional<int64_t>(1)
                                                      : Number(part.substr(colon + 1));
    part = part.substr(0, colon);
    const size_t dash = part.find('-');
    const auto first = Number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : Number(part.substr(dash + 1));
    if (!first || !last || !step || *first < 0 || *last < *first || *step < 1) return std::nullopt;
    if (*last > kLargestInArray || *step > kLargestInArray) return std::nullopt;
    if (static_cast<size_t>((*last - *first) / *step) >= most - numbers.size()) return std::nullopt;
    for (int64_t i = *first; i <= *last; i += *step) numbers.push_back(i);
    if (numbers.size() >= most && at <= text.size()) return std::nullopt;
  }
  return numbers;
}

}  // namespace shoal::importer
