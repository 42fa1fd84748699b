#include "import/kubernetes/mpi_job.h"

#include <algorithm>

namespace shoal::importer {
namespace {

constexpr std::string_view kOperatorFiles = "/etc/mpi/";
constexpr std::string_view kHostFile = "/etc/mpi/hostfile";

bool IsHostFileOption(std::string_view word) {
  constexpr std::string_view kOptions[] = {"--hostfile", "-hostfile", "--machinefile",
                                           "-machinefile", "-f"};
  return std::find(std::begin(kOptions), std::end(kOptions), word) != std::end(kOptions);
}

// Removes " --hostfile /etc/mpi/hostfile" (with a blank or '=') from a shell script.
std::string WithoutHostFile(std::string script) {
  for (size_t at = script.find(kHostFile); at != std::string::npos;
       at = script.find(kHostFile, at)) {
    const size_t blank = at > 1 ? script.find_last_of(" \t\n", at - 2) : std::string::npos;
    const size_t begin = blank == std::string::npos ? 0 : blank + 1;
    const bool option =
        at > begin + 1 && IsHostFileOption(std::string_view(script).substr(begin, at - 1 - begin));
    if (option) {
      script.erase(begin, at + kHostFile.size() - begin);
      at = begin;
    } else {
      at += kHostFile.size();
    }
  }
  return script;
}

// Removes the option with the operator's host file: Shoal tells mpirun the hosts.
bool RemoveHostFile(std::vector<std::string>* command) {
  std::vector<std::string> words;
  for (size_t i = 0; i < command->size(); ++i) {
    const std::string& word = (*command)[i];
    const bool next = i + 1 < command->size() && (*command)[i + 1] == kHostFile;
    if (next && IsHostFileOption(word)) {
      ++i;
      continue;
    }
    std::string rest = WithoutHostFile(word);
    if (!rest.empty() || word.empty()) words.push_back(std::move(rest));
  }
  const bool taken = words != *command;
  *command = std::move(words);
  return taken;
}

bool Names(const job::Role& role, std::string_view what) {
  const auto names = [&](const std::string& word) { return word.find(what) != std::string::npos; };
  return std::ranges::any_of(role.command, names) || std::ranges::any_of(role.args, names);
}

void ReadLauncherLine(job::Role* launcher, FieldReader* document) {
  document->set_at("roles." + launcher->name + ".command");
  // Without a command the image's own entry point is often `exec "$@"`.
  const bool of_command = RemoveHostFile(&launcher->command);
  if (RemoveHostFile(&launcher->args) || of_command) {
    document->AddLoss("spec",
                      "mpirun read its hosts from /etc/mpi/hostfile; left out: Shoal tells it the "
                      "workers and their slots",
                      true);
  }
  if (Names(*launcher, kOperatorFiles)) {
    document->AddLoss(
        "spec",
        "the command names files in /etc/mpi, which the operator wrote; not kept: they "
        "are not there, so that what reads them fails; the hosts are in "
        "$SHOAL_MPI_HOSTS, as HOST:SLOTS with blanks between them");
  }
  if (Names(*launcher, "horovodrun")) {
    document->AddLoss("spec",
                      "horovodrun reaches its hosts by ssh, which workers have not here; start the "
                      "program with mpirun, or as a job of framework horovod");
  }
}

}  // namespace

void ConvertMpiLauncher(const MpiJobOptions& ask, FieldReader* document, JobBuilder* builder) {
  job::Job& job = *builder->job();
  job::Role* launcher = builder->FindRole("launcher");
  job::Role* worker = builder->FindRole("worker");
  if (launcher != nullptr) ReadLauncherLine(launcher, document);
  if (launcher == nullptr || worker == nullptr || worker->replicas == 0) {
    job.framework = job::Framework::kGeneric;  // mpirun starts all ranks in the launcher's own task
    return;
  }
  worker->processes = ask.slots;
  worker->command.clear();
  document->set_at("roles.worker");
  document->AddLoss(
      "spec",
      "the workers waited for mpirun to come by ssh or kubectl; kept: its daemons come "
      "through Shoal, and a worker's own command is not needed",
      true);
  if (!ask.launcher_works) return;
  ++worker->replicas;
  document->AddLoss(
      "spec.runLauncherAsWorker",
      "ranks also ran in the launcher's pod; kept as one worker more, with the workers' "
      "resources, so that there are as many slots");
}

}  // namespace shoal::importer
