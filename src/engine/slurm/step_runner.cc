#include "engine/slurm/step_runner.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "engine/process/spawn.h"
#include "engine/process/task_process.h"

namespace shoal::engine::slurm {
namespace {

constexpr size_t kLongestLine = 64 << 10;

// Reads all available bytes; closes the descriptor at the end of the stream.
void ReadInto(UniqueFd* fd, std::string* text) {
  char block[16 << 10];
  while (fd->valid()) {
    const ssize_t got = ::read(fd->get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;
    if (got == 0) return fd->Reset();
    text->append(block, static_cast<size_t>(got));
  }
}

// The next complete line; false if there is none. Overlong lines are dropped.
bool TakeLine(std::string* text, std::string* line) {
  const size_t end = text->find('\n');
  if (end == std::string::npos) {
    if (text->size() > kLongestLine) text->clear();
    return false;
  }
  line->assign(*text, 0, end);
  text->erase(0, end + 1);
  return true;
}

}  // namespace

void StepRunner::Start(const StepSpec& spec) {
  std::vector<std::string> argv = spec.words;
  argv.insert(argv.end(), {program_, "slurm", "step", spec.file});
  if (!spec.number.empty()) argv.push_back(spec.number);
  auto child = StartChild(argv, spec.words.empty() ? CurrentEnvironment() : env_);
  if (!child.ok()) {
    for (const TaskTable::Incarnation& life : spec.incarnations)
      callbacks_.on_refused(life, child.status().message());
    return;
  }
  Step step;
  step.child = std::move(*child);
  step.answer = !spec.number.empty();
  for (const TaskTable::Incarnation& life : spec.incarnations) step.members.push_back({life});
  steps_.push_back(std::move(step));
}

void StepRunner::Signal(const TaskTable::Incarnation& life, int signal) {
  for (Step& step : steps_) {
    const auto member = std::find_if(step.members.begin(), step.members.end(),
                                     [&](const Member& one) { return one.life == life; });
    if (member == step.members.end()) continue;
    const bool none = std::none_of(step.members.begin(), step.members.end(),
                                   [](const Member& one) { return one.started; });
    if (none && signal == SIGKILL) (void)SignalProcess(step.child.pidfd.get(), SIGKILL);
    step.unsent += EncodeStepSignal({signal, static_cast<int>(member - step.members.begin())});
    return Send(&step);
  }
}

void StepRunner::Send(Step* step) {
  while (!step->unsent.empty() && step->child.in.valid()) {
    const ssize_t put = ::write(step->child.in.get(), step->unsent.data(), step->unsent.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) return step->child.in.Reset();
    step->unsent.erase(0, static_cast<size_t>(put));
  }
}

void StepRunner::AddPolls(std::vector<pollfd>* polls) const {
  for (const Step& step : steps_) {
    polls->push_back({step.child.pidfd.get(), POLLIN, 0});
    polls->push_back({step.child.out.get(), POLLIN, 0});
    polls->push_back({step.child.err.get(), POLLIN, 0});
    if (!step.unsent.empty()) polls->push_back({step.child.in.get(), POLLOUT, 0});
  }
}

void StepRunner::Handle() {
  for (auto step = steps_.begin(); step != steps_.end();) {
    const bool ended = ProcessEnded(step->child.pidfd.get());
    ReadOut(&*step);
    ReadErr(&*step);
    Send(&*step);
    if (!ended) {
      ++step;
      continue;
    }
    End(&*step);
    step = steps_.erase(step);
  }
}

void StepRunner::ReadOut(Step* step) {
  ReadInto(&step->child.out, &step->out);
  std::string line;
  while (TakeLine(&step->out, &line)) HandleLine(step, line);
}

void StepRunner::ReadErr(Step* step) {
  ReadInto(&step->child.err, &step->err);
  std::string line;
  while (TakeLine(&step->err, &line)) {
    LogInfo("{}", line);
    const std::string_view failed = FailedNodes(line);
    if (!failed.empty()) callbacks_.on_nodes_failed(std::string(failed));
    if (!line.empty()) step->last_words = line;
  }
}

void StepRunner::HandleLine(Step* step, std::string_view line) {
  const auto said = DecodeStepEvent(line);
  if (!said.ok() || static_cast<size_t>(said->task) >= step->members.size()) {
    LogInfo("a step said: {}", line.substr(0, 200));
    return;
  }
  Member& member = step->members[static_cast<size_t>(said->task)];
  if (member.over) return;
  switch (said->word) {
    case StepEventKind::kStarted:
      member.started = true;
      return callbacks_.on_started(member.life);
    case StepEventKind::kEnded:
      member.over = true;
      if (step->answer) {
        step->unsent += EncodeStepSignal({SIGKILL, said->task});
        Send(step);
      }
      return callbacks_.on_ended(member.life, said->end, "");
    case StepEventKind::kRefused:
      member.over = true;
      return callbacks_.on_refused(member.life, said->end.reason);
  }
}

// Tasks whose end was not reported ended with the step.
void StepRunner::End(Step* step) {
  const TaskEnd end = DecodeWaitStatus(ReapChild(step->child));
  for (const Member& member : step->members) callbacks_.on_step_ended(member.life);
  for (const Member& member : step->members) {
    if (member.over) continue;
    TaskEnd lost;
    lost.exit_code = member.started || end.exit_code <= 0 ? -1 : end.exit_code;
    if (member.started)
      lost.reason =
          "was lost with its step" + (step->last_words.empty() ? "" : "; " + step->last_words);
    callbacks_.on_ended(member.life, lost, step->last_words);
  }
}

}  // namespace shoal::engine::slurm
