#include "engine/local/isolated_dirs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "engine/process/local_host.h"

namespace shoal::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLoopback = "127.0.0.1";

fs::path IsolatedRoot(const std::string& job_dir) { return fs::path(job_dir) / "apart"; }

// A port that is free now.
Result<uint16_t> FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || ::bind(fd.get(), raw, size) != 0 || ::getsockname(fd.get(), raw, &size) != 0)
    return ErrnoStatus(errno, "cannot find a free port");
  return ntohs(address.sin_port);
}

// The simulated host of a task: tasks are assigned to hosts in order, without the task's excluded
// ones.
Result<std::string> HostFor(const DesiredTask& task) {
  const char* names = std::getenv("SHOAL_APART_HOSTS");
  if (names == nullptr) {
    TRY(CheckHostNotExcluded("local-apart", task));
    return LocalHostName();
  }
  std::vector<std::string> hosts;
  std::istringstream words(names);
  for (std::string name; std::getline(words, name, ',');) {
    const auto& not_there = task.excluded_hosts;
    if (std::find(not_there.begin(), not_there.end(), name) == not_there.end())
      hosts.push_back(name);
  }
  if (hosts.empty()) return FailedPrecondition("there is no host that it may be made on any more");
  return hosts[static_cast<size_t>(task.index) % hosts.size()];
}

}  // namespace

Status CreateIsolatedDirs(const DesiredJob& desired) {
  const fs::path dir = IsolatedRoot(desired.job_dir);
  TRY(MakeDirectories(dir / "seed", 0700));
  for (const auto& [name, bytes] : desired.bootstrap_files)
    TRY(WriteFileAtomically(dir / "seed" / name, bytes, 0400, false));
  if (fs::exists(dir / "port")) return Status::Ok();
  TRY_ASSIGN(const uint16_t port, FreePort());
  return WriteFileAtomically(dir / "port", std::to_string(port), 0600, false);
}

Result<uint16_t> IsolatedCoordinatorPort(const std::string& job_dir) {
  const auto text = ReadFile(IsolatedRoot(job_dir) / "port", 16);
  if (!text.ok()) return Unavailable("the coordinator has no port yet");
  uint16_t port = 0;
  (void)std::from_chars(text->data(), text->data() + text->size(), port);
  if (port == 0) return DataLoss((IsolatedRoot(job_dir) / "port").string() + ": expected a port");
  return port;
}

Result<DesiredTask> IsolateTask(const std::string& job_dir, const DesiredTask& task,
                                int incarnation) {
  const std::string name =
      task.role + "-" + std::to_string(task.index) + "." + std::to_string(incarnation);
  const fs::path dir = IsolatedRoot(job_dir) / name;
  TRY(MakeDirectories(dir, 0700));
  TRY_ASSIGN(const uint16_t port, IsolatedCoordinatorPort(job_dir));
  const PlaceholderValues values{
      {kCoordinatorPlaceholder, std::string(kLoopback) + ":" + std::to_string(port)},
      {kPortPlaceholder, std::to_string(port)},
      {kHostPlaceholder, kLoopback},
      {kDirPlaceholder, dir.string()},
      {kBootstrapDirPlaceholder, (IsolatedRoot(job_dir) / "seed").string()},
      {kIndexPlaceholder, std::to_string(task.index)}};
  DesiredTask filled = task;
  TRY_ASSIGN(filled.env[kNodeVariable], HostFor(task));
  for (std::string& word : filled.argv) word = ExpandPlaceholders(word, values);
  for (auto& [variable, value] : filled.env) value = ExpandPlaceholders(value, values);
  if (filled.work_dir.empty()) filled.work_dir = dir.string();
  return filled;
}

void RemoveIsolatedDirs(const std::string& job_dir) {
  std::error_code ignored;
  fs::remove_all(IsolatedRoot(job_dir), ignored);
}

}  // namespace shoal::engine
