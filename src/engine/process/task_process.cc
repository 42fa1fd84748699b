#include "engine/process/task_process.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"

extern char** environ;

namespace shoal::engine {
namespace {

void Replace(std::string* text, const std::string& mark, const std::string& by) {
  for (size_t at = text->find(mark); at != std::string::npos; at = text->find(mark, at + by.size()))
    text->replace(at, mark.size(), by);
}

}  // namespace

std::string TaskVariable(const std::string& role, int index, int incarnation) {
  return role + "/" + std::to_string(index) + "/" + std::to_string(incarnation);
}

TaskEnd DecodeWaitStatus(int wait_status) {
  TaskEnd end;
  if (wait_status != -1 && WIFSIGNALED(wait_status)) end.signal = WTERMSIG(wait_status);
  if (wait_status != -1 && WIFEXITED(wait_status)) end.exit_code = WEXITSTATUS(wait_status);
  end.reason = DescribeEnd(end);
  return end;
}

const std::vector<std::string>& StoreVariables() {
  static const std::vector<std::string> names = {"AWS_ACCESS_KEY_ID",
                                                 "AWS_SECRET_ACCESS_KEY",
                                                 "AWS_SESSION_TOKEN",
                                                 "AWS_PROFILE",
                                                 "AWS_SHARED_CREDENTIALS_FILE",
                                                 "AWS_CONFIG_FILE",
                                                 "AWS_REGION",
                                                 "AWS_DEFAULT_REGION",
                                                 "AWS_ENDPOINT_URL",
                                                 "AWS_ENDPOINT_URL_S3",
                                                 "AWS_CA_BUNDLE",
                                                 "HADOOP_USER_NAME",
                                                 "HDFS_DELEGATION_TOKEN"};
  return names;
}

std::vector<std::string> CleanEnvironment() {
  static constexpr std::string_view kKept[] = {
      "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
      // search paths of the user's programs
      "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME",
      "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME",
      "SSL_CERT_FILE", "SSL_CERT_DIR",
      // programs differ in which spelling they read
      "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
      "ALL_PROXY",
      // Shoal's own
      "SHOAL_LOG", "SHOAL_FAULTS", "SHOAL_ISOLATION", "SHOAL_HOME", "SHOAL_CACHE",
      "SHOAL_CACHE_LIMIT", "SHOAL_NVML", "SHOAL_GPU_DIR",
      // for sanitized builds
      "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"};
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool keep = std::find(std::begin(kKept), std::end(kKept), name) != std::end(kKept) ||
                      std::ranges::find(StoreVariables(), name) != StoreVariables().end() ||
                      name.starts_with("LC_");
    if (keep) kept.emplace_back(text);
  }
  return kept;
}

std::vector<std::string> EnvironmentOf(const UserIds& user, const std::string& job_dir,
                                       std::vector<std::string> environment) {
  static constexpr std::string_view kOfOneUser[] = {
      "HOME",           "USER",          "LOGNAME",    "SHELL",       "XDG_RUNTIME_DIR",
      "XDG_CACHE_HOME", "XDG_DATA_HOME", "SHOAL_HOME", "SHOAL_CACHE", "SHOAL_GPU_DIR",
      "TMPDIR"};
  std::erase_if(environment, [](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('='));
    return std::ranges::find(kOfOneUser, name) != std::end(kOfOneUser) ||
           std::ranges::find(StoreVariables(), name) != StoreVariables().end();
  });
  constexpr size_t kEntryBytes = 16384;
  std::vector<char> buffer(kEntryBytes);
  passwd entry{};
  passwd* found = nullptr;
  (void)::getpwuid_r(user.uid, &entry, buffer.data(), buffer.size(), &found);
  struct stat info {};
  const bool has_home = found != nullptr && ::stat(found->pw_dir, &info) == 0 &&
                        S_ISDIR(info.st_mode) && info.st_uid == user.uid;
  environment.push_back("HOME=" + (has_home ? std::string(found->pw_dir) : job_dir));
  if (found == nullptr) return environment;
  for (const char* name : {"USER=", "LOGNAME="})
    environment.push_back(std::string(name) + found->pw_name);
  environment.push_back(std::string("SHELL=") + found->pw_shell);
  return environment;
}

SpawnSpec MakeSpawnSpec(const TaskIdentity& place, const DesiredTask& desired,
                        std::vector<std::string> environment) {
  SpawnSpec spec;
  spec.argv = desired.argv;
  for (std::string& arg : spec.argv)
    Replace(&arg, kIncarnationPlaceholder, std::to_string(place.incarnation));
  spec.env = std::move(environment);
  for (const auto& [name, value] : desired.env) {
    std::erase_if(spec.env,
                  [&](const std::string& entry) { return entry.starts_with(name + "="); });
    spec.env.push_back(name + "=" + value);
  }
  spec.env.push_back(std::string(kJobVariable) + "=" + place.job_id);
  spec.env.push_back(std::string(kDirVariable) + "=" + place.job_dir);
  spec.env.push_back(std::string(kTaskVariable) + "=" +
                     TaskVariable(place.role, place.index, place.incarnation));
  spec.work_dir = desired.work_dir;
  spec.log = TaskLogPath(place.job_dir, place.role, place.index);
  return spec;
}

}  // namespace shoal::engine
