#include "host/files/python_env.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/id.h"

extern char** environ;

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRequirements = 1 << 20;
constexpr const char* kReady = ".ready";

Result<fs::path> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return fs::path(name);
  const char* path = std::getenv("PATH");
  std::string_view rest(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const fs::path at = fs::path(rest.substr(0, end)) / name;
    if (::access(at.c_str(), X_OK) == 0) return at;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return NotFound(
      "the job has a requirements.txt, but there is no " + name +
      " in PATH; install python3 and python3-venv, or name requirements.txt in .shoalignore");
}

// Whether the result depends on more than the file: paths, other requirements files.
bool NamesFiles(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const bool option = line.starts_with("-r") || line.starts_with("-c") ||
                        line.starts_with("-e") || line.starts_with("--req") ||
                        line.starts_with("--cons") || line.starts_with("--edit");
    const bool path = line.starts_with(".") || line.starts_with("/") ||
                      line.find("file:") != std::string_view::npos ||
                      line.find(".whl") != std::string_view::npos ||
                      line.find("-f") != std::string_view::npos ||
                      line.find("$") != std::string_view::npos;
    if (option || path) return true;
  }
  return false;
}

// Runs it in `directory` with this process's outputs, and waits. The exit code, 128 + signal, or an
// error if it cannot be started.
Result<int> RunAndWait(const std::vector<std::string>& argv, const fs::path& directory) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus(error, "cannot start " + argv[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "cannot wait for " + argv[0]);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Status Step(const std::vector<std::string>& argv, const fs::path& directory,
            const std::string& remedy) {
  TRY_ASSIGN(const int code, RunAndWait(argv, directory));
  if (code == 0) return Status::Ok();
  std::string line;
  for (const std::string& word : argv) line += (line.empty() ? "" : " ") + word;
  return FailedPrecondition("the virtual environment of requirements.txt cannot be built: `" +
                            line + "` ended with " + std::to_string(code) +
                            ", see the lines above; " + remedy);
}

Status Lock(int fd, int how, const fs::path& path) {
  while (::flock(fd, how) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "cannot lock " + path.string());
  }
  return Status::Ok();
}

int64_t BytesBelow(const fs::path& directory) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    struct stat info {};
    if (::lstat(it->path().c_str(), &info) == 0) bytes += int64_t{info.st_blocks} * 512;
  }
  return bytes;
}

// The caller has exclusive access to `directory`.
Status Build(const PythonEnvSpec& spec, const fs::path& python, const fs::path& directory) {
  std::error_code error;
  fs::remove_all(directory, error);
  const fs::path beside = spec.requirements.parent_path();
  std::fprintf(stderr, "shoal: building the virtual environment of requirements.txt\n");
  TRY(Step({python.string(), "-m", "venv", directory.string()}, beside, "install python3-venv"));
  TRY(Step(
      {(directory / "bin/python").string(), "-m", "pip", "--disable-pip-version-check", "install",
       "--no-input", "--quiet", "--root-user-action=ignore", "-r", spec.requirements.string()},
      beside,
      "correct requirements.txt, or see whether the package index can be reached from here"));
  TRY_ASSIGN(const UniqueFd at, OpenFile(directory, O_RDONLY | O_DIRECTORY));
  if (::syncfs(at.get()) != 0) return ErrnoStatus(errno, "cannot store " + directory.string());
  return WriteFileAtomically(directory / kReady, std::to_string(BytesBelow(directory)) + "\n",
                             0600);
}

// Size in bytes; updates the time of use. -1 if the environment is incomplete.
int64_t Ready(const fs::path& directory, bool use) {
  const auto text = ReadFile(directory / kReady, 64);
  if (!text.ok()) return -1;
  const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  if (use) (void)::utimensat(AT_FDCWD, (directory / kReady).c_str(), times, 0);
  return std::max(std::atoll(text->c_str()), 0LL);
}

}  // namespace

Result<std::string> PythonEnvKey(const PythonEnvSpec& spec) {
  TRY_ASSIGN(const fs::path python, FindProgram(spec.python));
  std::error_code error;
  const fs::path real = fs::canonical(python, error);
  struct stat info {};
  if (error || ::stat(real.c_str(), &info) != 0) return ErrnoStatus(errno, python.string());
  TRY_ASSIGN(const std::string text, ReadFile(spec.requirements, kMaxRequirements));
  std::string key = "shoal-env-1\n" + python.string() + "\n" + real.string() + "\n" +
                    std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) + "." +
                    std::to_string(info.st_mtim.tv_nsec) + "\n";
  if (NamesFiles(text)) key += spec.files_digest + "\n";
  return Sha256Hex(key + text).substr(0, 32);
}

Result<PythonEnv> MakePythonEnv(const PythonEnvSpec& spec) {
  TRY_ASSIGN(const std::string key, PythonEnvKey(spec));
  TRY_ASSIGN(const fs::path python, FindProgram(spec.python));
  const fs::path root = spec.cache / "envs";
  TRY(MakeDirectories(root, 0700));
  PythonEnv env;
  env.directory = root / key;
  const fs::path lock = root / (key + ".lock");
  const fs::path failed = root / (key + ".failed");
  TRY_ASSIGN(env.lock, OpenFile(lock, O_RDWR | O_CREAT, 0600));
  for (;;) {
    TRY(Lock(env.lock.get(), LOCK_SH, lock));
    if (Ready(env.directory, true) >= 0) return env;
    if (::flock(env.lock.get(), LOCK_EX | LOCK_NB) != 0) {
      std::fprintf(stderr,
                   "shoal: waiting for the virtual environment of requirements.txt, which another "
                   "task builds\n");
      TRY(Lock(env.lock.get(), LOCK_EX, lock));
    }
    if (Ready(env.directory, true) >= 0) continue;
    if (const auto whose = ReadFile(failed, 4096); whose.ok() && *whose == spec.builder)
      return FailedPrecondition(
          "the virtual environment of requirements.txt could not be built by another task of this "
          "job on this machine; see that task's log");
    const Status built = Build(spec, python, env.directory);
    if (!built.ok()) {
      (void)WriteFileAtomically(failed, spec.builder, 0600,
                                false);  // otherwise the next task retries
      return built;
    }
    std::error_code ignored;
    fs::remove(failed, ignored);
    env.built = true;
  }
}

Status TrimPythonEnvs(const fs::path& cache, int64_t limit) {
  struct Env {
    fs::path directory;
    int64_t bytes = 0;
    timespec used{};
  };
  std::vector<Env> envs;
  int64_t sum = 0;
  std::error_code error;
  for (fs::directory_iterator it(cache / "envs", error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().has_extension()) continue;
    struct stat info {};
    const int64_t bytes = Ready(it->path(), false);
    if (bytes < 0 || ::stat((it->path() / kReady).c_str(), &info) != 0) continue;
    envs.push_back({it->path(), bytes, info.st_atim});
    sum += bytes;
  }
  std::sort(envs.begin(), envs.end(), [](const Env& a, const Env& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                          : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const Env& env : envs) {
    if (sum <= limit) break;
    auto lock = OpenFile(env.directory.string() + ".lock", O_RDWR);
    if (!lock.ok() || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) continue;
    // Removes the completeness marker first. The lock file stays, because another process may be
    // waiting for it.
    fs::remove(env.directory / kReady, error);
    fs::remove_all(env.directory, error);
    sum -= env.bytes;
  }
  return Status::Ok();
}

}  // namespace shoal::host
