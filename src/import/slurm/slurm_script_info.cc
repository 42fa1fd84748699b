#include "import/slurm/slurm_script_info.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "import/slurm/slurm_options.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

constexpr int64_t kMost = 1'000'000;        // tasks; more than a job may have
constexpr size_t kLongestScript = 100'000;  // the script is an argument of bash: at most 128 KiB
constexpr std::string_view kTorch[] = {"torchrun",    "torch.distributed", "accelerate launch",
                                       "MASTER_ADDR", "deepspeed",         "init_process_group"};
constexpr std::string_view kValued =
    "ABCDFGJLMNPSTUWbcdegijmnopqrtwx";  // short options of srun with a value

// Programs that start the program of their further words.
constexpr std::string_view kStarters[] = {"env",     "timeout",  "nice",    "ionice",   "stdbuf",
                                          "numactl", "setsid",   "taskset", "time",     "xargs",
                                          "chrt",    "unbuffer", "strace",  "parallel", "map"};
constexpr int kDeepest = 8;  // variables in variables, shells in shells
// Variables that srun's numbers of tasks come from, and that are no more than the job's.
constexpr std::string_view kOwnCounts[] = {"$SLURM_NTASKS", "$SLURM_NNODES", "$SLURM_NPROCS",
                                           "$SLURM_JOB_NUM_NODES", "$SLURM_NTASKS_PER_NODE"};

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Whether a name in lower case has the part mpi: not so "compiler".
bool HasMpi(std::string_view name) {
  for (size_t at = name.find("mpi"); at != std::string_view::npos; at = name.find("mpi", at + 1)) {
    if (at < 2 || name.substr(at - 2, 6) != "compil") return true;
  }
  return false;
}

std::vector<std::string> SplitWords(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(" \t\n", at);
    if (begin == std::string::npos) break;
    at = std::min(text.find_first_of(" \t\n", begin), text.size());
    words.push_back(text.substr(begin, at - begin));
  }
  return words;
}

// "#!/usr/bin/env bash -l" → bash, -l.
std::vector<std::string> Interpreter(std::string_view script) {
  std::vector<std::string> words =
      SplitWords(std::string(script.substr(2, std::min(script.find('\n'), script.size()) - 2)));
  if (words.size() > 1 && BaseName(words[0]) == "env") words.erase(words.begin());
  return words;
}

// Classifies the commands of a script: steps of srun, mpirun, torchrun, containers.
class ScriptAnalyzer {
 public:
  ScriptAnalyzer(std::string_view script, Diagnostics* diagnostics)
      : script_(script), diagnostics_(diagnostics) {}

  SlurmScriptInfo Read() {
    if (!ReadInterpreter()) return std::move(info_);
    for (size_t at = std::min(script_.find('\n'), script_.size() - 1) + 1; at < script_.size();) {
      const size_t end = std::min(script_.find('\n', at), script_.size() - 1) + 1;
      const std::string_view line = script_.substr(at, end - at);
      at = end;
      if (!line.starts_with("#SBATCH")) info_.text += line;
    }
    if (info_.text.size() > kLongestScript) {
      diagnostics_->AddError(
          {1, 1}, "",
          "got a script of more than 100,000 characters, expected a shorter one; let it "
          "call another");
    }
    info_.read = ParseShellScript(script_);  // the whole script, so that line numbers are right
    info_.torch = std::ranges::any_of(
        kTorch, [&](std::string_view mark) { return info_.text.find(mark) != std::string::npos; });
    for (const ShellCommand& command : info_.read.commands) ReadCommand(Resolve(command), 0);
    // Python programs may take their ranks from Slurm's variables, and toolchains have more than
    // MPI.
    info_.mpi = info_.mpi || (module_ && !python_);
    return std::move(info_);
  }

 private:
  bool ReadInterpreter() {
    if (script_.find("\r\n") != std::string_view::npos) {
      diagnostics_->AddError(
          {1, 1}, "",
          "got lines that end as DOS's do, which sbatch does not take, expected Unix's; "
          "dos2unix changes them");
      return false;
    }
    info_.shell = Interpreter(script_);
    const std::string program = info_.shell.empty() ? "" : BaseName(info_.shell[0]);
    if (program == "bash" || program == "sh" || program == "dash") {
      info_.shell[0] = "bash";
      return true;
    }
    diagnostics_->AddError({1, 1}, "",
                           "got a script for " + job::PrintableText(program) +
                               ", expected one for bash or sh; let a script of bash start it");
    return false;
  }

  // The srun or mpirun that a prefix starts, `timeout 60 srun` or `$PREFIX srun`.
  static std::vector<std::string>::const_iterator FindStarted(const ShellCommand& command) {
    if (!IsStarter(BaseName(command.words[0]))) return command.words.end();
    return std::ranges::find_if(command.words, [](const std::string& word) {
      return BaseName(word) == "srun" || BaseName(word) == "mpirun";
    });
  }

  // The words of a command that a variable of the script or an eval begins: "$LAUNCH ./a" is
  // "srun -n 4 ./a" behind LAUNCH="srun -n 4".
  ShellCommand Resolve(ShellCommand command) const {
    if (FindStarted(command) != command.words.end()) return command;
    for (int depth = 0; depth < kDeepest; ++depth) {
      std::string first = command.words[0];
      if (first.starts_with('$')) first = ValueOfVariable(first);
      std::vector<std::string> words = SplitWords(first);
      if (words.empty() || (words.size() == 1 && words[0] == command.words[0])) break;
      words.insert(words.end(), command.words.begin() + 1, command.words.end());
      command.words = std::move(words);
    }
    return command;
  }

  // The value of "$NAME", "${NAME}" or "${NAME:-value}"; empty if the script does not tell.
  std::string ValueOfVariable(std::string word) const {
    word.erase(0, 1);
    std::string otherwise;
    if (word.starts_with('{')) {
      if (!word.ends_with('}')) return "";
      word = word.substr(1, word.size() - 2);
      const size_t colon = std::min(word.find(":-"), word.find(":="));
      if (colon != std::string::npos) {
        otherwise = word.substr(colon + 2);
        word.resize(colon);
      }
    }
    const auto found = info_.read.values.find(word);
    return found == info_.read.values.end() ? otherwise : found->second;
  }

  // Whether the program starts one that its further words name; a variable may.
  static bool IsStarter(const std::string& program) {
    return program.starts_with('$') || std::ranges::find(kStarters, program) != std::end(kStarters);
  }

  void ReadCommand(const ShellCommand& command, int depth) {
    const std::string program = BaseName(command.words[0]);
    if (program == "srun" && !command.captured) ReadStep(command, 0);
    if (const auto later = FindStarted(command); later != command.words.end()) {
      info_.mpirun |= BaseName(*later) == "mpirun";
      if (BaseName(*later) == "srun" && !command.captured)
        ReadStep(command, static_cast<size_t>(later - command.words.begin()));
    }
    if (program == "bash" || program == "sh") ReadShellText(command, depth);
    // Debian has mpirun.openmpi and mpiexec.mpich, Intel mpiexec.hydra.
    const std::string kind = program.substr(0, program.find('.'));
    info_.mpirun |= kind == "mpirun" || kind == "mpiexec" || program == "orterun";
    info_.reads_files |= program == "module" || program == "ml" || program == "source" ||
                         command.words[0] == "." || program == "spack" || program == "conda";
    if (program != "module" && program != "ml") return;
    for (const std::string& word : command.words)
      info_.mpi = info_.mpi || HasMpi(word) || word.find("mvapich") != std::string::npos;
    module_ = module_ || std::ranges::any_of(command.words, IsMpiModule);
  }

  // A module of an MPI library, by its name, or of compilers with one.
  static bool IsMpiModule(const std::string& module) {
    static constexpr std::string_view kOthers[] = {"foss",  "fosscuda", "goolf", "goolfc", "gomkl",
                                                   "iomkl", "gimkl",    "hpcx",  "mpt"};
    const std::string name = Lower(module.substr(0, module.find('/')));
    return HasMpi(Lower(module)) || name.starts_with("mvapich") || name.starts_with("prgenv-") ||
           std::ranges::find(kOthers, name) != std::end(kOthers);
  }

  // bash -c TEXT
  void ReadShellText(const ShellCommand& command, int depth) {
    const auto option = std::ranges::find_if(command.words, [](const std::string& word) {
      return word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    });
    if (depth == kDeepest || command.captured || option == command.words.end() ||
        option + 1 == command.words.end())
      return;
    for (ShellCommand inside : ParseShellScript(*(option + 1)).commands) {
      inside.line = command.line;
      ReadCommand(Resolve(std::move(inside)), depth + 1);
    }
  }

  // `begin`: the word "srun".
  void ReadStep(const ShellCommand& command, size_t begin) {
    const std::vector<std::string>& words = command.words;
    int64_t tasks = 0;
    size_t i = begin + 1;
    for (; i < words.size(); ++i) {
      const std::string& word = words[i];
      // A variable with options, unless it is the last word.
      if (word.starts_with('$') && i + 1 < words.size()) {
        ReadVariableOptions();
        continue;
      }
      if (!word.starts_with('-')) break;
      const std::string next = i + 1 < words.size() ? words[i + 1] : "";
      if (word.starts_with("--het-group") || word.starts_with("--pack-group") ||
          word == "--multi-prog") {
        diagnostics_->AddError(
            {command.line, 1}, "srun",
            "got " + job::PrintableText(word) +
                ", expected the same program for all tasks of the job; make a role of "
                "each program");
      }
      if (const auto value = ValueOf(word, next, "-n", "--ntasks"))
        tasks = CountOf(*value, command.line);
      for (const char* name : {"--ntasks-per-node", "--tasks-per-node"}) {
        if (const auto value = ValueOf(word, next, "", name))
          RaiseCount(CountOf(*value, command.line), &info_.step_per_node);
      }
      for (const auto& [letter, name] :
           {std::pair{"-o", "--output"}, {"-e", "--error"}, {"-i", "--input"}}) {
        if (ValueOf(word, next, letter, name)) ReportFile(name, command.line);
      }
      info_.mpi = info_.mpi || (word.starts_with("--mpi=") && word != "--mpi=none");
      info_.image = info_.image || word.starts_with("--container-");
      if (TakesNext(word)) ++i;
    }
    const std::string program = i < words.size() ? BaseName(words[i]) : "";
    if (program == "hostname" || program == "nvidia-smi") return;  // prints where it runs
    ++info_.steps;
    info_.mpi = info_.mpi || HasMpi(Lower(program));  // ./mpi_hello, gmx_mpi
    python_ = python_ || program.starts_with("python");
    info_.small = info_.small && tasks == 1;
    RaiseCount(tasks, &info_.step_tasks);
    if (words[begin].find('/') != std::string::npos) {
      diagnostics_->AddLoss({command.line, 1}, "srun",
                            job::PrintableText(words[begin]) +
                                " is Slurm's own, which knows nothing of this job; call srun "
                                "without its directory",
                            "roles");
    }
  }

  // Options that a variable holds are those that any line of the script contains.
  void ReadVariableOptions() {
    for (size_t at = 0; at < info_.text.size();) {
      const size_t end = std::min(info_.text.find('\n', at), info_.text.size());
      const std::string_view line = std::string_view(info_.text).substr(at, end - at);
      at = end + 1;
      if (line.substr(std::min(line.find_first_not_of(" \t"), line.size())).starts_with('#'))
        continue;
      info_.image = info_.image || line.find("--container-") != std::string_view::npos;
      info_.mpi = info_.mpi || line.find("--mpi=pmi") != std::string_view::npos;
    }
  }

  // The value of an option, with a blank, "=" or, for a letter, nothing before it.
  static std::optional<std::string> ValueOf(const std::string& word, const std::string& next,
                                            const std::string& letter, const std::string& name) {
    if (word == name || (!letter.empty() && word == letter)) return next;
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
    if (!letter.empty() && word.size() > 2 && word.starts_with(letter) && word[1] != '-')
      return word.substr(2);
    return std::nullopt;
  }

  // 0, and a loss, for a number that only the running script knows.
  int64_t CountOf(const std::string& text, int line) {
    if (const auto number = job::ParseInteger(text)) return std::clamp<int64_t>(*number, 0, kMost);
    std::string plain = text.substr(0, text.find(":-"));
    std::erase_if(plain, [](char c) { return c == '{' || c == '}'; });
    if (std::ranges::find(kOwnCounts, plain) == std::end(kOwnCounts)) {
      diagnostics_->AddLoss({line, 1}, "srun",
                            "its number of tasks is " + job::PrintableText(text) +
                                ", which is not known before the script runs: the job has as many "
                                "as #SBATCH says, and a step of more ends with an error; give the "
                                "number with #SBATCH --ntasks",
                            "roles");
    }
    return 0;
  }

  static void RaiseCount(int64_t count, int* most) {
    *most = std::max(*most, static_cast<int>(count));
  }

  void ReportFile(const std::string& option, int line) {
    const bool input = option == "--input";
    if (!files_.insert(option).second) return;
    const std::string sentence =
        input ? " said where it reads its input; not kept: give it with < behind the command"
              : " said where it writes; not kept: `shoal logs` has it; give a file with > behind "
                "the command";
    if (input) return diagnostics_->AddLoss({line, 1}, "srun", option + sentence, "roles");
    diagnostics_->AddMinorLoss({line, 1}, "srun", option + sentence, "roles");
  }

  static bool TakesNext(const std::string& word) {
    if (word.size() == 2) return kValued.find(word[1]) != std::string_view::npos;
    if (!word.starts_with("--") || word.find('=') != std::string::npos) return false;
    if (word.starts_with("--container-") || word == "--mpi" || word == "--cpu-bind") return true;
    const SlurmOption* option = FindSlurmOption(word.substr(2));
    return option != nullptr && option->value;
  }

  const std::string_view script_;
  Diagnostics* const diagnostics_;
  SlurmScriptInfo info_;
  bool module_ = false;          // loads a module with MPI, or a toolchain with one
  bool python_ = false;          // srun starts Python
  std::set<std::string> files_;  // options for files that are reported
};

}  // namespace

SlurmScriptInfo AnalyzeSlurmScript(std::string_view script, Diagnostics* diagnostics) {
  return ScriptAnalyzer(script, diagnostics).Read();
}

}  // namespace shoal::importer
