#include "dialect/import/slurm_options.h"

#include <algorithm>
#include <cctype>

#include "job/units.h"

namespace shoal::dialect {
namespace {

constexpr SlurmUse kRead = SlurmUse::kRead;
constexpr SlurmUse kPassed = SlurmUse::kPassed;
constexpr SlurmUse kTold = SlurmUse::kTold;
constexpr int64_t kLargestInArray = 4'000'000;  // MaxArraySize can be set so high
constexpr std::string_view kLogs = "`shoal logs` has what tasks write";

// Of sbatch 24.05, in its order.
constexpr SlurmOption kOptions[] = {
    {"array", 'a', true, kRead},
    {"account", 'A', true, kRead},
    {"acctg-freq"},
    {"batch"},
    {"bb"},
    {"bbf"},
    {"begin", 'b', true, kPassed, "when it starts", {}, false},
    {"chdir", 'D', true, kRead},
    {"cluster-constraint"},
    {"clusters", 'M', true, kPassed, "on which cluster it runs", {}, false},
    {"comment", 0, true, kTold, "a note for people", "the name of the job"},
    {"constraint", 'C', true, kRead},
    {"container", 0, true, kTold, "the container it runs in",
     "set image for an engine that has them", false},
    {"container-id", 0, true, kTold, "the container it runs in",
     "set image for an engine that has them", false},
    {"contiguous", 0, false},
    {"core-spec", 'S'},
    {"cores-per-socket"},
    {"cpu-freq"},
    {"cpus-per-gpu", 0, true, kRead},
    {"cpus-per-task", 'c', true, kRead},
    {"deadline", 0, true, kPassed, "until when it must have ended", {}, false},
    {"delay-boot"},
    {"dependency", 'd', true, kPassed, "after which jobs it starts", {}, false},
    {"distribution", 'm', true, kTold, "which tasks share a node",
     "tasks are numbered node by node"},
    {"error", 'e', true, kTold, "where its errors are written", kLogs},
    {"exclude", 'x'},
    {"exclusive", 0, false, kRead},
    {"export", 0, true, kRead},
    {"export-file", 0, true, kTold, "a file of variables", "set env", false},
    {"extra"},
    {"extra-node-info", 'B'},
    {"get-user-env", 0, false, kTold, "that a login's variables are set", "set env", false},
    {"gid", 0, true, kTold, "as which group it runs", "it runs as who submits it"},
    {"gpu-bind", 0, true, kTold, "which task uses which GPU", "each task sees its own"},
    {"gpu-freq"},
    {"gpus", 'G', true, kRead},
    {"gpus-per-node", 0, true, kRead},
    {"gpus-per-socket", 0, true, kTold, "how many GPUs a socket has", "set resources.gpu", false},
    {"gpus-per-task", 0, true, kRead},
    {"gres", 0, true, kRead},
    {"gres-flags"},
    {"hint"},
    {"hold", 'H', false, kTold, "that it waits until somebody releases it", "it starts at once"},
    {"ignore-pbs", 0, false, kTold},
    {"input", 'i', true, kTold, "what it reads as its input", "give it with < in the command",
     false},
    {"job-name", 'J', true, kRead},
    {"kill-on-invalid-dep"},
    {"licenses", 'L', true, kPassed, "which licenses it needs", {}, false},
    {"mail-type"},
    {"mail-user"},
    {"mcs-label"},
    {"mem", 0, true, kRead},
    {"mem-bind", 0, true, kTold, "which memory of a node its tasks use", "the system chooses"},
    {"mem-per-cpu", 0, true, kRead},
    {"mem-per-gpu", 0, true, kRead},
    {"mincpus"},
    {"network"},
    {"nice", 0, false},
    {"no-kill", 'k', false, kTold, "that it goes on without a node", "so it does"},
    {"no-requeue", 0, false, kRead},
    {"nodefile", 'F'},
    {"nodelist", 'w', true, kPassed, "on which nodes it runs", {}, false},
    {"nodes", 'N', true, kRead},
    {"ntasks", 'n', true, kRead},
    {"ntasks-per-core"},
    {"ntasks-per-gpu", 0, true, kRead},
    {"ntasks-per-node", 0, true, kRead},
    {"ntasks-per-socket"},
    {"open-mode", 0, true, kTold, "how its log is opened", kLogs},
    {"output", 'o', true, kTold, "where its output is written", kLogs},
    {"overcommit", 'O', false},
    {"oversubscribe", 's', false},
    {"parsable", 0, false, kTold},
    {"partition", 'p', true, kRead},
    {"power"},
    {"prefer"},
    {"priority"},
    {"profile"},
    {"propagate", 0, false, kTold, "which limits of the shell hold", "those of the machine"},
    {"qos", 'q', true, kRead},
    {"quiet", 'Q', false, kTold},
    {"reboot", 0, false},
    {"requeue", 0, false, kRead},
    {"reservation", 0, true, kRead},
    {"segment"},
    {"signal", 0, true, kRead},
    {"sockets-per-node"},
    {"spread-job", 0, false},
    {"stepmgr", 0, false},
    {"switches"},
    {"tasks-per-node", 0, true, kRead},
    {"test-only", 0, false, kTold, "that it is only checked", "see `shoal plan`", false},
    {"thread-spec"},
    {"threads-per-core"},
    {"time", 't', true, kRead},
    {"time-min"},
    {"tmp"},
    {"tres-bind", 0, true, kTold, "which task uses which device", "each task sees its own"},
    {"tres-per-task", 0, true, kTold, "what each task uses", "set resources", false},
    {"uid", 0, true, kTold, "as whom it runs", "it runs as who submits it", false},
    {"use-min-nodes", 0, false},
    {"verbose", 'v', false, kTold},
    {"wait", 'W', false, kTold, "that sbatch waits for its end", "`shoal run` does"},
    {"wait-all-nodes"},
    {"wckey"},
    {"wrap", 0, true, kTold, "a command in place of a script", "the script runs"},
    {"x11", 0, false, kTold, "that it may open windows", "a task has none"},
};

// The words of a line of options, quotes taken away; '#' begins a comment.
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

class Lines {
 public:
  explicit Lines(Notes* notes) : notes_(notes) {}

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
        return notes_->Wrong(place_, "#SBATCH", "got " + job::Shown(word) + ", expected its value");
      }
      said_[std::string(option->name == "tasks-per-node" ? "ntasks-per-node" : option->name)] = {
          value, place_};
    }
  }

  SlurmSaids Take() { return std::move(said_); }

 private:
  static const SlurmOption* ByLetter(char letter) {
    const auto found = std::ranges::find(kOptions, letter, &SlurmOption::letter);
    return found == std::end(kOptions) ? nullptr : &*found;
  }

  void Unknown(const std::string& word, const std::string& name) {
    std::vector<std::string> names;
    for (const SlurmOption& option : kOptions) names.emplace_back(option.name);
    const std::string meant = name.empty() ? "" : job::DidYouMean(name, names);
    notes_->Wrong(place_, "#SBATCH",
                  "got " + job::Shown(word) + ", expected an option of sbatch" + meant);
  }

  Notes* const notes_;
  job::Place place_;
  SlurmSaids said_;
};

std::optional<int64_t> Number(std::string_view text) { return job::ParseInteger(text); }

}  // namespace

const SlurmOption* FindSlurmOption(std::string_view name) {
  const SlurmOption* found = nullptr;
  for (const SlurmOption& option : kOptions) {
    if (option.name == name) return &option;
    if (!option.name.starts_with(name) || name.empty()) continue;
    if (found != nullptr) return nullptr;  // of two
    found = &option;
  }
  return found;
}

SlurmSaids ReadSbatchLines(std::string_view script, Notes* notes) {
  constexpr std::string_view kMark = "#SBATCH";
  Lines lines(notes);
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
      notes->Lose({number, 1}, "#SBATCH",
                  "stands behind the first command, where sbatch does not look; not kept", "");
    } else if (option) {
      const std::vector<std::string> words = WordsOf(line.substr(kMark.size()));
      if (!words.empty() && (words[0] == "hetjob" || words[0] == "packjob")) {
        notes->Wrong({number, 1}, "#SBATCH",
                     "got a heterogeneous job, expected one component; make a role of each, with "
                     "roles.NAME.slurm (docs/engines/slurm.md)");
      } else {
        lines.Read(words, number);
      }
    } else if (text != std::string_view::npos && line[text] != '#') {
      commands = true;
    }
  }
  return lines.Take();
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
    // "08" is eight.
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

}  // namespace shoal::dialect
