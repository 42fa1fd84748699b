#include "queue/simulate/trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "job/text/errors.h"
#include "job/text/units.h"

namespace shoal::queue {
namespace {

constexpr double kMostSeconds = 1e13;
constexpr int32_t kMostTasks = 1'000'000;

const std::vector<std::string>& FieldNames() {
  static const std::vector<std::string> kNames = {
      "t",   "event",  "job", "queue", "user", "team",     "flavor",   "tasks",     "min",
      "max", "memory", "cpu", "gpu",   "run",  "expected", "priority", "checkpoint"};
  return kNames;
}

// One line: a flat object of numbers and texts without escapes, which is what such logs consist
// of. A general parser takes several times as long.
class LineParser {
 public:
  LineParser(std::string_view line, Trace* trace) : at_(line), trace_(*trace) {}

  // The problem, or an empty text.
  std::string Parse();

 private:
  struct Token {
    bool text = false;
    std::string_view value;
  };

  void Skip() {
    while (!at_.empty() && (at_[0] == ' ' || at_[0] == '\t' || at_[0] == '\r'))
      at_.remove_prefix(1);
  }
  bool Take(char c) {
    Skip();
    if (at_.empty() || at_[0] != c) return false;
    at_.remove_prefix(1);
    return true;
  }
  bool TakeText(std::string_view* text);
  bool TakeValue(Token* token);
  std::string Set(std::string_view name, const Token& token);
  std::string SetText(std::string_view name, std::string_view text);
  std::string SetNumber(std::string_view name, double value);
  std::string SetMemory(const Token& token);
  std::string Finish();

  std::string_view at_;
  Trace& trace_;
  TraceJob job_;
  TraceMachines machines_;
  std::string_view event_;
  std::optional<double> seconds_;
  std::array<bool, kResources> given_{};
  bool sized_ = false;  // min or max was given
};

bool LineParser::TakeText(std::string_view* text) {
  if (!Take('"')) return false;
  const size_t end = at_.find_first_of("\"\\");
  if (end == std::string_view::npos || at_[end] == '\\') return false;
  *text = at_.substr(0, end);
  at_.remove_prefix(end + 1);
  return true;
}

bool LineParser::TakeValue(Token* token) {
  Skip();
  if (!at_.empty() && at_[0] == '"') {
    token->text = true;
    return TakeText(&token->value);
  }
  token->text = false;
  size_t length = 0;
  while (length < at_.size() && at_[length] != ',' && at_[length] != '}' && at_[length] != ' ')
    ++length;
  token->value = at_.substr(0, length);
  at_.remove_prefix(length);
  return length > 0;
}

std::string LineParser::SetText(std::string_view name, std::string_view text) {
  if (name == "event") {
    event_ = text;
  } else if (name == "job") {
    job_.id = text;
  } else if (name == "queue") {
    job_.queue = trace_.Intern(text);
  } else if (name == "user") {
    job_.user = trace_.Intern(text);
  } else if (name == "team") {
    job_.team = trace_.Intern(text);
  } else if (name == "flavor") {
    machines_.flavor = text;
    job_.flavor = trace_.Intern(text);
  } else {
    return std::string(name) + ": got a text, expected a number";
  }
  return "";
}

std::string LineParser::SetMemory(const Token& token) {
  const std::optional<int64_t> bytes = job::ParseSize(token.value);
  if (!bytes) return "memory: got '" + std::string(token.value) + "', expected a size such as 8Gi";
  job_.per_task[1] = machines_.total[1] = (*bytes + 1023) / 1024;
  given_[1] = true;
  return "";
}

std::string LineParser::SetNumber(std::string_view name, double value) {
  const auto duration = [value] { return Millis(std::llround(value * 1000)); };
  if (value < 0 && name != "priority") return std::string(name) + ": got a negative number";
  if (value > kMostSeconds) return std::string(name) + ": got a number that is too large";
  const auto count = static_cast<int32_t>(std::min<double>(value, kMostTasks));
  if (name == "t") {
    seconds_ = value;
  } else if (name == "cpu" || name == "gpu") {
    const size_t r = name == "cpu" ? 0 : 2;
    job_.per_task[r] = machines_.total[r] = std::llround(value * 1000);
    given_[r] = true;
  } else if (name == "tasks") {
    job_.tasks = count;
  } else if (name == "min") {
    job_.least = count;
    sized_ = true;
  } else if (name == "max") {
    job_.most = count;
    sized_ = true;
  } else if (name == "priority") {
    job_.priority = static_cast<int32_t>(std::clamp(value, -1e6, 1e6));
  } else if (name == "run") {
    job_.run_time = duration();
  } else if (name == "expected") {
    job_.expected = duration();
  } else if (name == "checkpoint") {
    job_.checkpoint = duration();
  } else {
    return std::string(name) + ": got a number, expected a text";
  }
  return "";
}

std::string LineParser::Set(std::string_view name, const Token& token) {
  if (std::find(FieldNames().begin(), FieldNames().end(), name) == FieldNames().end())
    return "got the unknown field '" + std::string(name) + "'" +
           job::DidYouMean(name, FieldNames());
  if (name == "memory") return SetMemory(token);
  if (token.text) return SetText(name, token.value);
  double value = 0;
  const char* const end = token.value.data() + token.value.size();
  const auto [stop, error] = std::from_chars(token.value.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value))
    return std::string(name) + ": got '" + std::string(token.value) + "', expected a number";
  return SetNumber(name, value);
}

std::string LineParser::Finish() {
  if (!seconds_) return "got no t, expected the time in seconds";
  const Millis at(std::llround(*seconds_ * 1000));
  if (event_ == "machines") {
    if (machines_.flavor.empty()) return "got no flavor, expected the name of one";
    machines_.at = at;
    trace_.machines.push_back(machines_);
    return "";
  }
  if (job_.id.empty()) return "got no job, expected its id";
  job_.submitted = at;
  if (event_ == "cancel") {
    job_.cancelled = at;
    job_.tasks = 0;  // marks it for ParseTrace
  } else if (event_ != "submit") {
    static const std::vector<std::string> kEvents = {"submit", "cancel", "machines"};
    return "event: got '" + std::string(event_) + "', expected submit, cancel or machines" +
           job::DidYouMean(event_, kEvents);
  } else if (job_.tasks < 1) {
    return "tasks: got 0, expected at least 1";
  }
  if (!sized_) job_.least = job_.most = job_.tasks;
  job_.most = std::max(job_.most, job_.least);
  if (event_ == "submit" && job_.least < 1) return "min: got 0, expected at least 1";
  trace_.jobs.push_back(std::move(job_));
  return "";
}

std::string LineParser::Parse() {
  if (!Take('{')) return "expected an object of numbers and texts without escapes";
  do {
    std::string_view name;
    Token token;
    if (!TakeText(&name) || !Take(':') || !TakeValue(&token))
      return "expected an object of numbers and texts without escapes";
    if (std::string problem = Set(name, token); !problem.empty()) return problem;
  } while (Take(','));
  if (!Take('}')) return "expected an object of numbers and texts without escapes";
  Skip();
  if (!at_.empty()) return "got text after the object";
  return Finish();
}

// Joins the cancellations to their jobs and sorts by time.
Status Arrange(const std::string& file, Trace* trace) {
  std::map<std::string, size_t> submitted;
  std::vector<TraceJob> jobs;
  bool cancels = false;
  for (const TraceJob& job : trace->jobs) cancels |= job.tasks == 0;
  for (TraceJob& job : trace->jobs) {
    if (!cancels) break;
    if (job.tasks > 0) {
      submitted[job.id] = jobs.size();
      jobs.push_back(std::move(job));
      continue;
    }
    const auto found = submitted.find(job.id);
    if (found == submitted.end())
      return InvalidArgument(file + ": the cancelled job '" + job.id +
                             "' was not submitted before, expected its submission first");
    jobs[found->second].cancelled = job.cancelled;
  }
  if (cancels) trace->jobs = std::move(jobs);
  const auto earlier = [](const TraceJob& a, const TraceJob& b) {
    return a.submitted < b.submitted;
  };
  if (!std::is_sorted(trace->jobs.begin(), trace->jobs.end(), earlier))
    std::stable_sort(trace->jobs.begin(), trace->jobs.end(), earlier);
  std::stable_sort(trace->machines.begin(), trace->machines.end(),
                   [](const TraceMachines& a, const TraceMachines& b) { return a.at < b.at; });
  return Status::Ok();
}

void AppendNumber(const char* name, double value, std::string* text) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, ",\"%s\":%.10g", name, value);
  *text += buffer;
}

void AppendAmounts(const Amounts& amounts, std::string* text) {
  for (const size_t r : {0, 2}) {
    if (amounts[r] != 0 && amounts[r] < kUnlimited)
      AppendNumber(kResourceNames[r], static_cast<double>(amounts[r]) / 1000, text);
  }
  if (amounts[1] != 0 && amounts[1] < kUnlimited)
    *text += ",\"memory\":\"" + std::to_string(amounts[1]) + "Ki\"";
}

}  // namespace

int32_t Trace::Intern(std::string_view name) {
  if (numbers_.empty()) numbers_.emplace("", 0);
  if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
  const auto number = static_cast<int32_t>(names.size());
  names.emplace_back(name);
  numbers_.emplace(std::string(name), number);
  return number;
}

Result<Trace> ParseTrace(std::string_view text, const std::string& file) {
  Trace trace;
  trace.jobs.reserve(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (const std::string problem = LineParser(one, &trace).Parse(); !problem.empty())
      return InvalidArgument(file + ":" + std::to_string(line) + ": " + problem);
  }
  TRY(Arrange(file, &trace));
  return trace;
}

std::string TraceText(const Trace& trace) {
  std::string text;
  for (const TraceMachines& machines : trace.machines) {
    text += "{\"event\":\"machines\",\"flavor\":\"" + machines.flavor + "\"";
    AppendNumber("t", static_cast<double>(machines.at.count()) / 1000, &text);
    AppendAmounts(machines.total, &text);
    text += "}\n";
  }
  for (const TraceJob& job : trace.jobs) {
    text += "{\"event\":\"submit\",\"job\":\"" + job.id + "\"";
    AppendNumber("t", static_cast<double>(job.submitted.count()) / 1000, &text);
    const std::pair<const char*, int32_t> names[] = {
        {"queue", job.queue}, {"user", job.user}, {"team", job.team}};
    for (const auto& [field, number] : names) {
      if (number != 0) text += std::string(",\"") + field + "\":\"" + trace.name(number) + "\"";
    }
    if (job.flavor > 0) text += ",\"flavor\":\"" + trace.name(job.flavor) + "\"";
    if (job.tasks != 1) AppendNumber("tasks", job.tasks, &text);
    if (job.least != job.tasks || job.most != job.tasks) {
      AppendNumber("min", job.least, &text);
      AppendNumber("max", job.most, &text);
    }
    AppendAmounts(job.per_task, &text);
    if (job.priority != 0) AppendNumber("priority", job.priority, &text);
    const std::pair<const char*, Millis> times[] = {
        {"run", job.run_time}, {"expected", job.expected}, {"checkpoint", job.checkpoint}};
    for (const auto& [field, time] : times) {
      if (time > Millis(0)) AppendNumber(field, static_cast<double>(time.count()) / 1000, &text);
    }
    text += "}\n";
    if (job.cancelled == kForever) continue;
    text += "{\"event\":\"cancel\",\"job\":\"" + job.id + "\"";
    AppendNumber("t", static_cast<double>(job.cancelled.count()) / 1000, &text);
    text += "}\n";
  }
  return text;
}

}  // namespace shoal::queue
