#include "learn/algorithm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>

#include "base/log.h"
#include "data/objects/object_uri.h"
#include "learn/ffm/ffm.h"
#include "learn/fm/fm.h"
#include "learn/logistic/logistic.h"
#include "learn/task/memory.h"
#include "learn/task/parameter_server.h"
#include "learn/task/task.h"
#include "learn/word2vec/word2vec.h"

extern char** environ;

namespace shoal::learn {
namespace {

// The task that the signal handler stops; set before the handler is installed.
Task* told = nullptr;

void OnSignal(int signal) {
  told->stop_signal.store(signal);
  told->stop.store(true);
}

void InstallHandlers(Task& task) {
  told = &task;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

Environment RealEnvironment() {
  Environment env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with("SHOAL_") && equals != std::string_view::npos)
      env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return env;
}

Result<const Algorithm*> AlgorithmOf(const std::map<std::string, job::LearnValue>& learn,
                                     std::string_view file) {
  std::string known;
  for (const Algorithm& one : Algorithms())
    known += (known.empty() ? "" : ", ") + std::string(one.name);
  const auto named = learn.find("algorithm");
  if (named == learn.end())
    return InvalidArgument("learn.algorithm: missing; expected one of " + known);
  const Algorithm* const algorithm = FindAlgorithm(named->second.text);
  if (algorithm != nullptr) return algorithm;
  return InvalidArgument(fmt::format("{}got {}, expected one of {}",
                                     FormatPlace(file, named->second, "algorithm"),
                                     named->second.text, known));
}

// True if a signal ended the task before its training was done.
bool EndsEarly(const Status& status, const Task& task) {
  const bool before = status.code() == Code::kCancelled && task.stop.load();
  return before || (status.ok() && task.cut_short);
}

// Ends the process by the signal, as without a handler.
int EndBySignal(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  return 128 + signal;  // the first process of a PID namespace survives the signal
}

Status RunRole(std::string_view role, Task& task) {
  TRY_ASSIGN(const Algorithm* algorithm, AlgorithmOf(task.learn, ""));
  if (role == "server") return algorithm->run_server(task);
  if (role == "worker") return algorithm->run_worker(task);
  return InvalidArgument(fmt::format("role: got {}, expected server or worker", role));
}

int PrintError(const std::string& command, const Status& status) {
  std::fprintf(stderr, "shoal %s: %s\n", command.c_str(), status.message().c_str());
  return status.code() == Code::kInvalidArgument ? 2 : 1;
}

// Converts std::bad_alloc into an error; training threads do so themselves.
Status WithinMemory(const std::function<Status()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

int RunTaskBody(const std::string& command, const std::string& role,
                const std::function<Status(Task&)>& body) {
  Result<std::unique_ptr<Task>> task = Task::Make(role, RealEnvironment());
  if (!task.ok()) return PrintError(command, task.status());
  SetLogName(fmt::format("{}-{}", role, (*task)->index));
  InstallHandlers(**task);
  const Status status = WithinMemory([&] { return body(**task); });
  if (EndsEarly(status, **task)) {
    if (!status.ok()) LogWarning("{}", status.message());
    // The job is being stopped: this is the expected end.
    if ((*task)->IsJobEnding()) return 0;
    return EndBySignal((*task)->stop_signal.load());
  }
  return status.ok() ? 0 : PrintError(command, status);
}

}  // namespace

std::span<const Algorithm> Algorithms() {
  static const std::array algorithms = {word2vec::GetAlgorithm(), logistic::GetLinearAlgorithm(),
                                        logistic::GetAlgorithm(), fm::GetAlgorithm(),
                                        ffm::GetAlgorithm()};
  return algorithms;
}

const Algorithm* FindAlgorithm(std::string_view name) {
  for (const Algorithm& algorithm : Algorithms()) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

Status ValidateLearn(const job::Job& job, DataLocation data) {
  if (job.framework != job::Framework::kShoal) return Status::Ok();
  TRY_ASSIGN(const Algorithm* algorithm, AlgorithmOf(job.learn, job.file));
  return algorithm->validate(job, data);
}

bool UsesStores(const job::Job& job) {
  for (const job::DataSource& data : job.data) {
    if (std::ranges::any_of(data.sources, data::IsRemoteUri)) return true;
  }
  if (const auto from = job.learn.find("from");
      from != job.learn.end() && data::IsRemoteUri(from->second.text))
    return true;
  return std::ranges::any_of(job.outputs,
                             [](const auto& output) { return data::IsRemoteUri(output.second); });
}

int RunTask(std::string_view role) {
  return RunTaskBody("learn " + std::string(role), std::string(role),
                     [&](Task& task) { return RunRole(role, task); });
}

int RunServerTask() {
  return RunTaskBody("ps-server", "server", [](Task& task) { return RunParameterServer(task); });
}

}  // namespace shoal::learn
