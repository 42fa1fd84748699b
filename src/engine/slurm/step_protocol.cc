#include "engine/slurm/step_protocol.h"

#include <charconv>
#include <csignal>

#include "base/json.h"

namespace shoal::engine::slurm {
namespace {

constexpr size_t kLongestReason = 1500;  // escaped it may be twice that
constexpr size_t kLongestLine = 4096;

struct SignalName {
  const char* name;
  int signal;
};
constexpr SignalName kSignals[] = {
    {"term", SIGTERM}, {"kill", SIGKILL}, {"usr1", SIGUSR1}, {"usr2", SIGUSR2}};

std::optional<int> Number(std::string_view text) {
  int value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::string EncodeStepEvent(const StepEvent& line) {
  json::object object{{"task", line.task}};
  switch (line.word) {
    case StepEventKind::kStarted:
      object["word"] = "started";
      break;
    case StepEventKind::kEnded:
      object["word"] = "ended";
      object["exit"] = line.end.exit_code;
      object["signal"] = line.end.signal;
      object["oom"] = line.end.out_of_memory;
      break;
    case StepEventKind::kRefused:
      object["word"] = "refused";
      object["reason"] = line.end.reason.substr(0, kLongestReason);
      break;
  }
  return ToText(object) + "\n";
}

Result<StepEvent> DecodeStepEvent(std::string_view text) {
  if (text.size() > kLongestLine) return InvalidArgument("a line of more than 4 KiB");
  const size_t begin = text.find('{');
  if (begin == std::string_view::npos) return InvalidArgument("expected a JSON object");
  TRY_ASSIGN(const json::object object, ParseJsonObject(text.substr(begin)));
  StepEvent line;
  TRY_ASSIGN(const int64_t task, GetInt(object, "task"));
  if (task < 0 || task > job::kMaxTasks) return InvalidArgument("task: out of range");
  line.task = static_cast<int>(task);
  TRY_ASSIGN(const std::string word, GetString(object, "word"));
  if (word == "started") return line;
  if (word == "refused") {
    line.word = StepEventKind::kRefused;
    TRY_ASSIGN(line.end.reason, GetString(object, "reason"));
    return line;
  }
  if (word != "ended") return InvalidArgument("word: got \"" + word + "\"");
  line.word = StepEventKind::kEnded;
  TRY_ASSIGN(const int64_t code, GetInt(object, "exit"));
  TRY_ASSIGN(const int64_t signal, GetInt(object, "signal"));
  if (code < -1 || code > 255 || signal < 0 || signal > 127)
    return InvalidArgument("exit or signal: out of range");
  line.end.exit_code = static_cast<int>(code);
  line.end.signal = static_cast<int>(signal);
  line.end.out_of_memory = GetBoolOr(object, "oom", false);
  return line;
}

std::string EncodeStepSignal(const StepSignal& order) {
  for (const SignalName& one : kSignals) {
    if (one.signal == order.signal) return one.name + (" " + std::to_string(order.task)) + "\n";
  }
  return "";
}

std::optional<StepSignal> DecodeStepSignal(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view what = text.substr(0, space);
  const auto task = Number(text.substr(space + 1));
  for (const SignalName& one : kSignals) {
    if (task && what == one.name) return StepSignal{one.signal, *task};
  }
  return std::nullopt;
}

std::string_view FailedNodes(std::string_view line) {
  constexpr std::string_view kMark = "Node failure on ";
  const size_t at = line.find(kMark);
  if (!line.starts_with("srun: ") || at == std::string_view::npos) return {};
  std::string_view nodes = line.substr(at + kMark.size());
  return nodes.substr(0, nodes.find(' '));
}

}  // namespace shoal::engine::slurm
