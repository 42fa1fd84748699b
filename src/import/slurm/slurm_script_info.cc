#include "import/slurm/slurm_script_info.h"

#include <algorithm>

#include "import/slurm/slurm_options.h"

namespace shoal::importer {
namespace {

constexpr size_t kLongestScript = 100'000;  // the script is an argument of bash: at most 128 KiB
constexpr std::string_view kTorch[] = {"torchrun",    "torch.distributed", "accelerate launch",
                                       "MASTER_ADDR", "deepspeed",         "init_process_group"};
constexpr std::string_view kValued =
    "ABCDFGJLMNPSTUWbcdegijmnopqrtwx";  // short options of srun with a value

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "#!/usr/bin/env bash -l" → bash, -l.
std::vector<std::string> Interpreter(std::string_view script) {
  const std::string first(script.substr(2, std::min(script.find('\n'), script.size()) - 2));
  std::vector<std::string> words;
  for (size_t at = 0; at < first.size();) {
    const size_t begin = first.find_first_not_of(" \t", at);
    if (begin == std::string::npos) break;
    at = std::min(first.find_first_of(" \t", begin), first.size());
    words.push_back(first.substr(begin, at - begin));
  }
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
    for (const ShellCommand& command : info_.read.commands) ReadCommand(command);
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

  void ReadCommand(const ShellCommand& command) {
    const std::string program = BaseName(command.words[0]);
    if (program == "srun" && !command.captured) ReadStep(command);
    info_.mpirun = info_.mpirun || program == "mpirun" || program == "mpiexec" ||
                   program == "orterun" || program == "mpiexec.hydra";
    if (program != "module" && program != "ml") return;
    for (const std::string& word : command.words) {
      info_.mpi = info_.mpi || word.find("mpi") != std::string::npos ||
                  word.find("mvapich") != std::string::npos;
    }
  }

  void ReadStep(const ShellCommand& command) {
    const std::vector<std::string>& words = command.words;
    bool one = false;
    size_t i = 1;
    for (; i < words.size() && words[i].starts_with('-'); ++i) {
      const std::string& word = words[i];
      if (word.starts_with("--het-group") || word.starts_with("--pack-group") ||
          word == "--multi-prog") {
        diagnostics_->AddError(
            {command.line, 1}, "srun",
            "got " + job::PrintableText(word) +
                ", expected the same program for all tasks of the job; make a role of "
                "each program");
      }
      const bool next_is_one = i + 1 < words.size() && words[i + 1] == "1";
      one = one || word == "--ntasks=1" || word == "-n1" ||
            ((word == "-n" || word == "--ntasks") && next_is_one);
      info_.mpi = info_.mpi || (word.starts_with("--mpi=") && word != "--mpi=none");
      info_.image = info_.image || word.starts_with("--container-");
      if (TakesNext(word)) ++i;
    }
    const std::string program = i < words.size() ? BaseName(words[i]) : "";
    if (program == "hostname" || program == "nvidia-smi") return;  // prints where it runs
    ++info_.steps;
    info_.small = info_.small && one;
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
};

}  // namespace

SlurmScriptInfo AnalyzeSlurmScript(std::string_view script, Diagnostics* diagnostics) {
  return ScriptAnalyzer(script, diagnostics).Read();
}

}  // namespace shoal::importer
