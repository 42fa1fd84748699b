#include "import/slurm/slurm_script_reports.h"

#include <algorithm>
#include <cctype>

#include "import/slurm/slurm_environment.h"
#include "job/text/yaml_tree.h"

namespace shoal::importer {
namespace {

constexpr job::SourceLocation kScript = {1, 1};

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Variables that the script uses and that are not set in a task.
void ReportVariables(const SlurmScriptInfo& script, const SlurmReportOptions& options,
                     const std::string& at, Diagnostics* diagnostics) {
  const auto [list, of_slurm] = FindMissingVariables(script.read, options.array);
  const std::string exported = Upper(options.export_option);
  const bool none = exported == "NONE" || exported == "NIL";
  if (!list.empty()) {
    diagnostics->AddLoss(
        kScript, options.exports ? "--export" : "",
        "the script uses " + list + " and does not set it" +
            (none ? "" : ", which it may have had from the shell that submitted it") +
            (script.reads_files ? ", or has from a module or a file that it reads" : "") +
            "; tasks have a small environment: give what is needed with --set env.NAME=VALUE",
        at);
  } else if (!none) {
    diagnostics->AddMinorLoss(
        kScript, "",
        "the script had the variables of the shell that submitted it; tasks have a small "
        "environment",
        at);
  }
  if (!of_slurm.empty()) {
    diagnostics->AddLoss(
        kScript, "",
        "the script uses " + of_slurm +
            ", which Slurm sets; not kept: it is not set here, where nothing stands for it",
        at);
  }
}

// Programs by which the script reaches Slurm.
void ReportSlurmPrograms(const SlurmScriptInfo& script, const std::string& at,
                         Diagnostics* diagnostics) {
  for (const ShellCommand& command : script.read.commands) {
    const std::string program = command.words[0].substr(command.words[0].rfind('/') + 1);
    if (program != "sbatch" && program != "scancel" && program != "sbcast") continue;
    diagnostics->AddLoss(
        kScript, program,
        "the script calls it, which reaches Slurm only where there is one; it knows nothing of "
        "this job",
        at);
    break;
  }
  // Also in the text of a trap.
  for (const char* verb : {"requeue", "update", "hold", "suspend"}) {
    if (script.text.find(std::string("scontrol ") + verb) == std::string::npos) continue;
    diagnostics->AddLoss(
        kScript, "scontrol",
        std::string("the script calls it to ") + verb +
            " its job; not done: SLURM_JOB_ID is no job of Slurm here; a job that is suspended or "
            "loses its place goes on by itself, and `restart` is for one that fails",
        at);
  }
}

}  // namespace

void ReportSlurmScript(const SlurmScriptInfo& script, const SlurmReportOptions& options,
                       const std::string& at, Diagnostics* diagnostics) {
  ReportVariables(script, options, at, diagnostics);
  if (script.read.arguments) {
    diagnostics->AddLoss(
        kScript, "",
        "the script reads its arguments; what stood behind its name at sbatch is to be added to "
        "the command",
        at);
  }
  if (script.image) {
    diagnostics->AddLoss(
        kScript, "srun",
        "its programs ran in a container (--container-image); here they run without it: set "
        "image for an engine that has them",
        at);
  }
  ReportSlurmPrograms(script, at, diagnostics);
}

void ReportSlurmOptions(const SlurmOptionValues& options, job::Job* job, Diagnostics* diagnostics) {
  for (const auto& [name, said] : options) {
    const SlurmOption* option = FindSlurmOption(name);
    if (option == nullptr || option->use == SlurmOptionHandling::kRead) continue;
    const auto add = [&, path = "--" + name](const std::string& sentence, const char* at) {
      if (option->minor) return diagnostics->AddMinorLoss(said.place, path, sentence, at);
      diagnostics->AddLoss(said.place, path, sentence, at);
    };
    if (option->use == SlurmOptionHandling::kWarned) {
      add(job::PrintableText(said.value) + " said " + std::string(option->meant) +
              "; not kept: " + std::string(option->instead),
          "slurm");
      continue;
    }
    const bool plain = std::ranges::none_of(said.value, [](unsigned char c) {
      return c <= ' ' || c == '\'' || c == '"' || c == '\\' || c == '#';
    });
    if (!plain) {
      add("not kept: slurm.options takes no blanks and quotes", "slurm");
      continue;
    }
    job->slurm.options.push_back("--" + name + (said.value.empty() ? "" : "=" + said.value));
    add("it says " + std::string(option->meant) +
            ", and is kept in slurm.options; other engines do not heed it",
        "slurm.options");
  }
}

}  // namespace shoal::importer
