// `shoal prepare [--files] [--gpus N] [--mpi] -- COMMAND…`: unpacks the job's files and creates its
// virtual environment on this host, leases GPUs, writes mpirun's configuration, and executes the
// command. Started by launchers in place of a task's program; hidden from --help.

#include "rendezvous/transfer/stage_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "cli/internal/internal_commands.h"
#include "cli/terminal/report.h"
#include "controller/files/state_home.h"
#include "host/files/blob_cache.h"
#include "host/gpu/gpu_lease.h"
#include "rendezvous/framework_services/mpi_launch.h"

namespace shoal::cli {
namespace {

// Exit codes as in shells.
constexpr int kNoSuchProgram = 127;
constexpr int kCannotRun = 126;
// A device's memory is freed some time after its last process has ended; a holder that takes longer
// is named.
constexpr Duration kWaitForGpus = std::chrono::seconds(60);
constexpr Duration kLookAgain = std::chrono::milliseconds(200);

struct PrepareArguments {
  bool files = false;
  bool if_there = false;
  bool mpi = false;
  int gpus = 0;
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Places the staged files and the virtual environment in the task's scratch directory and changes
// to it.
Status PrepareTaskFiles(const PrepareArguments& arguments) {
  rendezvous::StageFilesOptions options;
  options.job_dir = Variable("SHOAL_JOB_DIR");
  options.scratch = Variable("SHOAL_SCRATCH");
  options.builder = Variable("SHOAL_JOB_ID") + " " + Variable("SHOAL_ATTEMPT");
  options.only_if_staged = arguments.if_there;
  if (options.job_dir.empty() || options.scratch.empty())
    return InvalidArgument(
        "shoal prepare runs in the tasks of a job: SHOAL_JOB_DIR and SHOAL_SCRATCH are not set");
  std::filesystem::path fallback = options.scratch / "cache";
  if (const auto home = controller::FindStateHome(); home.ok()) fallback = *home / "cache";
  options.cache = host::CacheRoot(fallback);
  TRY_ASSIGN(const rendezvous::StagedFiles prepared, rendezvous::StageFiles(options));
  if (::chdir(prepared.work_dir.c_str()) != 0)
    return ErrnoStatus(errno, prepared.work_dir.string());
  ::setenv("PWD", prepared.work_dir.c_str(), 1);
  if (prepared.env.empty()) return Status::Ok();
  ::setenv("VIRTUAL_ENV", prepared.env.c_str(), 1);
  ::setenv("PATH", (prepared.env / "bin").string().append(":").append(Variable("PATH")).c_str(), 1);
  ::unsetenv("PYTHONHOME");
  return Status::Ok();
}

// Keeps the user's own settings.
Status PrepareTaskForMpi() {
  rendezvous::MpiLaunchPaths place;
  place.scratch = Variable("SHOAL_SCRATCH");
  place.hosts = Variable("SHOAL_MPI_HOSTS");
  std::error_code error;
  place.program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return FailedPrecondition("/proc/self/exe: " + error.message());
  TRY_ASSIGN(const auto variables, rendezvous::WriteMpiLaunchFiles(place));
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 0);
  return Status::Ok();
}

Result<host::GpuLease> WaitForGpus(int count) {
  const std::string holder =
      Variable("SHOAL_JOB_ID") + " " + Variable("SHOAL_ROLE") + "-" + Variable("SHOAL_INDEX");
  TRY_ASSIGN(const std::unique_ptr<host::Nvml> nvml, host::Nvml::Load());
  const TimePoint until = RealClock::Get()->Now() + kWaitForGpus;
  for (bool told = false;;) {
    auto lease = host::AcquireGpus(nvml.get(), host::GpuLeaseDir(), count, holder);
    const bool later =
        lease.status().code() == Code::kResourceExhausted && RealClock::Get()->Now() < until;
    if (lease.ok() || !later) return lease;
    if (!std::exchange(told, true)) PrintNote("waiting: " + lease.status().message());
    std::this_thread::sleep_for(kLookAgain);
  }
}

// The first process of a task leases the devices and the others share them. They stay locked as
// long as a process that inherited the descriptors lives.
Status TakeTaskGpus(int count) {
  // An engine that leases devices itself has set the task's.
  if (!Variable("SHOAL_GPUS_GIVEN").empty()) {
    if (!Variable("CUDA_VISIBLE_DEVICES").empty()) return Status::Ok();
    return FailedPrecondition("the task asks for GPUs and the engine gave it none");
  }
  const std::filesystem::path shared = std::filesystem::path(Variable("SHOAL_SCRATCH")) / "gpus";
  TRY_ASSIGN(const UniqueFd turn, OpenFile(shared.string() + ".lock", O_RDWR | O_CREAT, 0600));
  while (::flock(turn.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "cannot lock " + shared.string());
  }
  auto visible = ReadFile(shared, 1 << 20);
  if (!visible.ok()) {
    TRY_ASSIGN(host::GpuLease lease, WaitForGpus(count));
    visible = lease.visible();
    TRY(WriteFileAtomically(shared, *visible, 0600, false));
    for (UniqueFd& lock : lease.locks) {
      if (::fcntl(lock.Release(), F_SETFD, 0) != 0) return ErrnoStatus(errno, "the lock of a GPU");
    }
  }
  ::setenv("CUDA_VISIBLE_DEVICES", visible->c_str(), 1);
  return Status::Ok();
}

int ExecProgram(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  (void)std::signal(SIGPIPE, SIG_DFL);
  ::execvp(words[0], words.data());
  const int error = errno;
  (void)PrintError(ErrnoStatus(error, "cannot start " + command[0]));
  return error == ENOENT ? kNoSuchProgram : kCannotRun;
}

int Prepare(const std::vector<std::string>& command, const PrepareArguments& arguments) {
  if (command.empty())
    return PrintError(InvalidArgument("got no command, expected `shoal prepare -- COMMAND`"));
  // If the engine has chosen the devices, the task sees no others.
  const bool take = arguments.gpus > 0 && Variable("SHOAL_GPUS_GIVEN").empty();
  Status status = take ? TakeTaskGpus(arguments.gpus) : Status::Ok();
  if (status.ok() && arguments.files) status = PrepareTaskFiles(arguments);
  if (status.ok() && arguments.mpi) status = PrepareTaskForMpi();
  if (status.ok()) return ExecProgram(command);
  if (!arguments.if_there) (void)PrintError(status);
  return 1;
}

}  // namespace

void AddPrepare(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<PrepareArguments>();
  CLI::App* sub =
      app.add_subcommand("prepare", "Prepare a task's environment, then execute its program");
  sub->add_flag("--files", arguments->files,
                "Unpack the job's files and make them the working directory");
  sub->add_flag("--if-there", arguments->if_there, "Fail if the files are not there yet");
  sub->add_flag("--mpi", arguments->mpi,
                "Write the files by which mpirun reaches the job's workers");
  sub->add_option("--gpus", arguments->gpus, "Number of GPUs to lease")->check(CLI::Range(0, 1024));
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      return Prepare(context.passthrough_args, *arguments);
    };
  });
}

}  // namespace shoal::cli
