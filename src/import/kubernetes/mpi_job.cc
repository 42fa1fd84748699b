#include "import/kubernetes/mpi_job.h"

#include <algorithm>
#include <cctype>

#include "import/kubernetes/operator_files.h"

namespace shoal::importer {
namespace {

constexpr std::string_view kOperatorFiles = "/etc/mpi/";
constexpr std::string_view kHostFile = "/etc/mpi/hostfile";
constexpr std::string_view kRemoteShell = "/etc/mpi/kubexec.sh";
// Variables that have a good value without the launcher's own.
constexpr std::string_view kOwnVariables[] = {
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
    "HYDRA_HOST_FILE",
    "I_MPI_HYDRA_HOST_FILE",
    "OMPI_MCA_plm_rsh_agent",
    "PRTE_MCA_plm_ssh_agent",
    "HYDRA_LAUNCHER_EXEC",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
};

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
  return CommandContains(role, what) || std::ranges::any_of(role.args, names) ||
         std::ranges::any_of(role.env, [&](const auto& one) { return names(one.second); });
}

// Variables with the operator's files: those that Shoal sets have its value, others are set before
// the command.
void MoveVariables(const std::string& host_file, job::Role* launcher) {
  for (auto it = launcher->env.begin(); it != launcher->env.end();) {
    const auto& [name, value] = *it;
    const bool files = value == kHostFile || value == kRemoteShell;
    const bool own = std::ranges::find(kOwnVariables, name) != std::end(kOwnVariables);
    if (!files || (!own && (launcher->command.empty() || value == kRemoteShell))) {
      ++it;
      continue;
    }
    if (!own) PutBeforeCommand("export " + name + "=\"$" + host_file + "\"", launcher);
    it = launcher->env.erase(it);
  }
}

// The launcher's own ssh reaches the workers through their tasks.
void SetRemoteShell(job::Role* launcher, FieldReader* document) {
  MovePath(kRemoteShell, "SHOAL_MPI_BIN/ssh", launcher);
  if (!CommandCalls(*launcher, "ssh")) return;
  PutBeforeCommand("export PATH=\"$SHOAL_MPI_BIN:$PATH\"", launcher);
  document->AddLoss("spec",
                    "ssh reached the workers by keys that the operator made; kept: before it in "
                    "the path is one that runs commands in the workers' tasks, with their "
                    "environment, without standard input, and with errors within the output; other "
                    "hosts are reached by the image's own ssh",
                    true);
}

// Programs that reach workers by themselves.
void ReportOtherShells(const job::Role& launcher, FieldReader* document) {
  std::string list;
  for (const char* program : {"scp", "rsync", "sftp", "pdsh", "parallel-ssh", "ssh-copy-id"}) {
    if (CommandCalls(launcher, program)) list += (list.empty() ? "" : ", ") + std::string(program);
  }
  if (list.empty()) return;
  document->AddLoss("spec", "the command runs " + list +
                                ", which reaches its hosts by ssh daemons and keys, which workers "
                                "have not here; not kept: its calls fail; use ssh HOST COMMAND, "
                                "which runs COMMAND in a worker's task");
}

void RemoveHostFiles(job::Role* launcher, FieldReader* document) {
  document->set_at("roles." + launcher->name + ".command");
  // Without a command the image's own entry point is often `exec "$@"`.
  const bool of_command = RemoveHostFile(&launcher->command);
  if (!RemoveHostFile(&launcher->args) && !of_command) return;
  document->AddLoss("spec",
                    "mpirun read its hosts from /etc/mpi/hostfile; left out: Shoal tells it the "
                    "workers and their slots",
                    true);
}

void ReportRest(const job::Role& launcher, const std::string& advice, FieldReader* document) {
  if (Names(launcher, kOperatorFiles)) {
    document->AddLoss("spec",
                      "the command names files in /etc/mpi, which the operator wrote; not kept: "
                      "they are not there, so that what reads them fails" +
                          advice);
  }
  if (Names(launcher, "horovodrun")) {
    document->AddLoss("spec",
                      "horovodrun reaches its hosts by ssh, which workers have not here; start the "
                      "program with mpirun, or as a job of framework horovod");
  }
}

// The launcher's command refers to what the operator made: the host file and a remote shell.
void ReadLauncherLine(const MpiJobOptions& ask, job::Role* launcher, FieldReader* document) {
  RemoveHostFiles(launcher, document);
  const std::string host_file = ask.hydra ? "SHOAL_MPI_HYDRA_HOSTFILE" : "SHOAL_MPI_HOSTFILE";
  if (CommandContains(*launcher, kHostFile)) {
    document->AddLoss("spec",
                      "the operator wrote /etc/mpi/hostfile; kept as $" + host_file +
                          ", with the workers by their names in the job (worker-0)",
                      true);
  }
  MovePath(kHostFile, host_file, launcher);
  MoveVariables(host_file, launcher);
  SetRemoteShell(launcher, document);
  ReportOtherShells(*launcher, document);
  ReportRest(*launcher, "; the hosts are in the file $SHOAL_MPI_HOSTFILE, as HOST slots=SLOTS",
             document);
}

}  // namespace

void ConvertMpiLauncher(const MpiJobOptions& ask, FieldReader* document, JobBuilder* builder) {
  job::Job& job = *builder->job();
  job::Role* launcher = builder->FindRole("launcher");
  job::Role* worker = builder->FindRole("worker");
  if (launcher == nullptr || worker == nullptr || worker->replicas == 0) {
    if (launcher != nullptr) {
      RemoveHostFiles(launcher, document);
      ReportRest(*launcher, "", document);
    }
    job.framework = job::Framework::kGeneric;  // mpirun starts all ranks in the launcher's own task
    return;
  }
  ReadLauncherLine(ask, launcher, document);
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
