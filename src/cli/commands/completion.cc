// `shoal completion SHELL`: prints the shell's completion script, generated from the command-line
// parser.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/main.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

// A command as the scripts need it.
struct Entry {
  std::string path;  // "train word2vec"; empty for shoal itself
  std::string about;
  std::vector<std::string> words;  // subcommands and options
  bool takes_job = false;
  std::vector<std::pair<std::string, std::string>> described;  // word → description
};

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

void Collect(const CLI::App& app, const std::string& path, std::vector<Entry>* entries) {
  Entry entry{path, FirstLine(app.get_description()), {}, false, {}};
  for (const CLI::App* sub : app.get_subcommands({})) {
    entry.words.push_back(sub->get_name());
    entry.described.emplace_back(sub->get_name(), FirstLine(sub->get_description()));
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() && option->get_name() == "JOB") entry.takes_job = true;
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) {
      entry.words.push_back("--" + name);
      entry.described.emplace_back("--" + name, FirstLine(option->get_description()));
    }
  }
  entries->push_back(std::move(entry));
  for (const CLI::App* sub : app.get_subcommands({}))
    Collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), entries);
}

std::string Join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// Quotes for single quotes of all three shells.
std::string Quoted(std::string text) {
  for (char& c : text) {
    if (c == '\'') c = '`';
  }
  return "'" + text + "'";
}

// "train/word2vec", as the bash script names commands.
std::string WithSlashes(std::string path) {
  for (char& c : path) c = c == ' ' ? '/' : c;
  return path;
}

constexpr const char* kBash = R"sh(# bash completion of shoal: source <(shoal completion bash)
_shoal() {
  local current=${COMP_WORDS[COMP_CWORD]} at= word words= jobs=0
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " @KNOWN@ " in *" ${at:+$at/}$word "*) at=${at:+$at/}$word ;; *) break ;; esac
  done
  case $at in
@CASES@  esac
  if [[ $current != -* ]]; then
    # Options only where one was begun: with any match bash does not go on to files.
    set -- $words
    words=
    for word; do case $word in -*) ;; *) words="$words $word" ;; esac; done
    [ "$jobs" = 1 ] && words="$words $(shoal jobs --ids 2>/dev/null)"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _shoal shoal
)sh";

constexpr const char* kZsh = R"sh(#compdef shoal
# zsh completion of shoal: source <(shoal completion zsh)
_shoal() {
  local at= word jobs=0
  local -a entries known ids
  known=(@KNOWN@)
  for word in "${(@)words[2,CURRENT-1]}"; do
    if (( ${known[(Ie)${at:+$at/}$word]} )); then at=${at:+$at/}$word; else break; fi
  done
  case $at in
@CASES@  esac
  _describe 'shoal' entries
  if (( jobs )); then
    ids=(${(f)"$(shoal jobs --ids 2>/dev/null)"})
    compadd -a ids
  fi
  _files
}
compdef _shoal shoal
)sh";

std::string Fill(std::string script, const std::vector<Entry>& entries, const std::string& cases) {
  std::vector<std::string> known;
  for (const Entry& entry : entries) {
    if (!entry.path.empty()) known.push_back(WithSlashes(entry.path));
  }
  const auto replace = [&](const std::string& mark, const std::string& text) {
    script.replace(script.find(mark), mark.size(), text);
  };
  replace("@KNOWN@", Join(known));
  replace("@CASES@", cases);
  return script;
}

std::string Bash(const std::vector<Entry>& entries) {
  std::string cases;
  for (const Entry& entry : entries) {
    cases += fmt::format("    {}) words={}; jobs={} ;;\n", Quoted(WithSlashes(entry.path)),
                         Quoted(Join(entry.words)), entry.takes_job ? 1 : 0);
  }
  return Fill(kBash, entries, cases);
}

std::string Zsh(const std::vector<Entry>& entries) {
  std::string cases;
  for (const Entry& entry : entries) {
    cases += fmt::format("    {})\n      entries=(", Quoted(WithSlashes(entry.path)));
    for (const auto& [word, about] : entry.described) {
      std::string text = about;
      for (char& c : text) c = c == ':' ? ',' : c;
      cases += "\n        " + Quoted(word + ":" + text);
    }
    cases += fmt::format(")\n      jobs={} ;;\n", entry.takes_job ? 1 : 0);
  }
  return Fill(kZsh, entries, cases);
}

// The script for fish: one `complete` line per word, guarded by the words typed so far.
std::string Fish(const std::vector<Entry>& entries) {
  std::string out = "# fish completion of shoal: shoal completion fish | source\n";
  for (const Entry& entry : entries) {
    std::string condition = "__fish_use_subcommand";
    if (!entry.path.empty()) {
      condition.clear();
      for (size_t begin = 0; begin < entry.path.size();) {
        const size_t end = std::min(entry.path.find(' ', begin), entry.path.size());
        condition += (condition.empty() ? "" : "; and ") +
                     std::string("__fish_seen_subcommand_from ") +
                     entry.path.substr(begin, end - begin);
        begin = end + 1;
      }
    }
    for (const auto& [word, about] : entry.described) {
      const bool option = word.starts_with("--");
      out += fmt::format("complete -c shoal -n {} {} {} -d {}\n", Quoted(condition),
                         option ? "-l" : "-f -a", Quoted(option ? word.substr(2) : word),
                         Quoted(about));
    }
    if (entry.takes_job) {
      out += fmt::format("complete -c shoal -n {} -f -a '(shoal jobs --ids 2>/dev/null)'\n",
                         Quoted(condition));
    }
  }
  return out;
}

int Print(const std::string& shell) {
  Run unused;
  const std::shared_ptr<CLI::App> app = MakeApp(false, &unused);
  std::vector<Entry> entries;
  Collect(*app, "", &entries);
  return PrintResult(shell == "bash"  ? Bash(entries)
                     : shell == "zsh" ? Zsh(entries)
                                      : Fish(entries));
}

constexpr const char* kCompletionFooter = R"help(Examples:
  source <(shoal completion bash)                       for this shell; to keep it, add to ~/.bashrc
  source <(shoal completion zsh)                        for this shell; to keep it, add to ~/.zshrc
  shoal completion fish > ~/.config/fish/completions/shoal.fish)help";

}  // namespace

void AddCompletion(CLI::App& app, Run* chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("completion", "Print the completion script of a shell");
  sub->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  sub->footer(kCompletionFooter);
  sub->callback([shell, chosen] { *chosen = [shell](const Context&) { return Print(*shell); }; });
}

}  // namespace shoal::cli
