#include "cli/terminal/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal/styled_line.h"

namespace shoal::cli {
namespace {

using job::JobState;
using job::TaskState;

std::optional<double> Number(const json::object& body, std::string_view field) {
  const double value = GetDoubleOr(body, field, std::nan(""));
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

Measure ReadMeasure(const json::object& body) {
  Measure measure;
  measure.step = Number(body, "step");
  measure.total = Number(body, "total");
  measure.rate = Number(body, "rate");
  measure.loss = Number(body, "loss");
  measure.lr = Number(body, "lr");
  measure.eta_s = Number(body, "eta_s");
  measure.exchange = Number(body, "exchange");
  measure.bytes_per_step = Number(body, "bytes_per_step");
  measure.unit = GetStringOr(body, "unit", "");
  measure.phase = GetStringOr(body, "phase", "");
  return measure;
}

// "25 s", "4 min", "3 h 12 min": without fractions, which would flicker.
std::string WholeTime(Duration duration) {
  const auto seconds = std::chrono::round<std::chrono::seconds>(duration);
  return seconds.count() < 60 ? fmt::format("{} s", seconds.count()) : FormatDuration(seconds);
}

// A report without steps ("count", "save") belongs to another phase: totals stay, current values
// are cleared.
void Update(const json::object& body, Measure* measure) {
  Measure next = ReadMeasure(body);
  if (!next.step && !next.total && measure->total) {
    next.step = measure->step;
    next.total = measure->total;
    next.loss = measure->loss;
    next.lr = measure->lr;
    next.unit = measure->unit;
  }
  *measure = std::move(next);
}

Style StyleOf(JobState state) {
  if (state == JobState::kFailed) return Style::kRed;
  if (state == JobState::kSucceeded || state == JobState::kRunning) return Style::kGreen;
  return Style::kYellow;
}

// "31 B/word", of the unit "words".
std::string BytesFact(double bytes, std::string unit) {
  if (unit.size() > 1 && unit.back() == 's') unit.pop_back();
  return FormatCount(bytes) + (bytes >= 999.5 ? "B/" : " B/") + (unit.empty() ? "step" : unit);
}

// Mean of the tasks' reports, weighted by their rates.
class WeightedMean {
 public:
  void Add(const std::optional<double>& value, double weight) {
    if (!value) return;
    sum_ += *value * weight;
    weight_ += weight;
  }
  std::optional<double> value() const {
    return weight_ > 0 ? std::optional<double>(sum_ / weight_) : std::nullopt;
  }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

double FractionOf(const Measure& measure) {
  if (!measure.step || !measure.total || *measure.total <= 0) return 0;
  return std::clamp(*measure.step / *measure.total, 0.0, 1.0);
}

// The texts after the fraction in the overall line, in order, without empty ones.
std::vector<std::string> Facts(const ProgressSummary& overall) {
  std::vector<std::string> facts;
  if (overall.rate)
    facts.push_back(FormatCount(*overall.rate) + " " +
                    (overall.unit.empty() ? "steps" : overall.unit) + "/s");
  if (overall.exchange) facts.push_back(fmt::format("exchange {:.0f} %", *overall.exchange * 100));
  if (overall.bytes_per_step)
    facts.push_back(BytesFact(std::round(*overall.bytes_per_step), overall.unit));
  if (overall.loss) facts.push_back(fmt::format("loss {:.4g}", *overall.loss));
  if (overall.lr) facts.push_back(fmt::format("lr {:.3g}", *overall.lr));
  if (overall.left) facts.push_back(WholeTime(*overall.left) + " left");
  return facts;
}

// "train  ████░░░  51.0 %  4.2 M words/s …": phase, bar, fraction and facts.
StyledLine OverallLine(const ProgressSummary& overall, const RenderOptions& options) {
  StyledLine line;
  if (!overall.phase.empty()) line.Add(overall.phase + "  ");
  std::string facts;
  for (const std::string& fact : Facts(overall)) facts += "  " + fact;
  if (overall.fraction) {
    // The bar takes the remaining width, between 10 and 40 columns.
    const int room = options.width - line.columns() - static_cast<int>(facts.size()) - 12;
    const int cells = std::clamp(room, 10, 40);
    const int full = static_cast<int>(*overall.fraction * cells);
    const std::string on = options.unicode ? "█" : "#";
    const std::string off = options.unicode ? "░" : ".";
    std::string done;
    std::string rest;
    for (int i = 0; i < cells; ++i) (i < full ? done : rest) += i < full ? on : off;
    line.Add(done, Style::kGreen).Add(rest, Style::kDim);
    line.Add(fmt::format("  {:.1f} %", *overall.fraction * 100), Style::kBold);
  }
  line.Add(facts);
  return line;
}

std::string StateText(const TaskModel& task) {
  if (task.state != TaskState::kEnded) return std::string(job::NameOf(task.state));
  if (task.will_restart) return "restarting";
  if (!task.end) return "ended";
  return task.end->ok() ? "done" : job::Describe(*task.end);
}

// "  worker-0  running    51 %  1.1 M words/s  210 MiB".
StyledLine TaskLine(const std::string& name, int name_width, const TaskModel& task) {
  StyledLine line;
  line.Add(fmt::format("  {:<{}}  ", name, name_width));
  const bool bad = task.end && !task.end->ok() && task.end->kind != job::EndKind::kCancelled;
  const Style style = bad                                 ? Style::kRed
                      : task.state == TaskState::kRunning ? Style::kGreen
                                                          : Style::kDim;
  line.Add(fmt::format("{:<9}", StateText(task)), style);
  if (task.attempt > 0) line.Add(fmt::format("  attempt {}", task.attempt + 1), Style::kYellow);
  if (task.state == TaskState::kRunning || task.state == TaskState::kDraining) {
    const Measure& measure = task.measure;
    if (measure.step && measure.total)
      line.Add(fmt::format("  {:3.0f} %", 100 * FractionOf(measure)));
    if (measure.rate) {
      line.Add(fmt::format("  {} {}/s", FormatCount(*measure.rate),
                           measure.unit.empty() ? "steps" : measure.unit));
    }
    if (task.rss_bytes > 0) line.Add(fmt::format("  {} MiB", task.rss_bytes >> 20), Style::kDim);
  }
  return line;
}

// "12 running, 3 done" for the tasks without a line of their own.
std::string CountStates(const std::map<std::pair<size_t, int>, TaskModel>& tasks, size_t skip) {
  std::map<std::string, int> counts;
  size_t at = 0;
  for (const auto& [key, task] : tasks) {
    if (at++ < skip) continue;
    ++counts[task.state == TaskState::kEnded ? (task.end && task.end->ok() ? "done" : "ended")
                                             : std::string(job::NameOf(task.state))];
  }
  std::string text;
  for (const auto& [state, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  return text;
}

void AddTaskLines(const ProgressModel& model, const RenderOptions& options,
                  std::vector<StyledLine>* lines) {
  const int room = std::max(3, options.height - 2 - static_cast<int>(lines->size()));
  const size_t all = model.tasks.size();
  const size_t shown = all <= static_cast<size_t>(room) ? all : static_cast<size_t>(room - 1);
  int name_width = 0;
  for (const auto& [key, task] : model.tasks) {
    const std::string name = fmt::format("{}-{}", model.roles[key.first], key.second);
    name_width = std::max(name_width, static_cast<int>(name.size()));
  }
  size_t at = 0;
  for (const auto& [key, task] : model.tasks) {
    if (at++ == shown) break;
    const std::string name = fmt::format("{}-{}", model.roles[key.first], key.second);
    lines->push_back(TaskLine(name, name_width, task));
  }
  if (shown < all) {
    lines->emplace_back();
    lines->back().Add(
        fmt::format("  and {} more: {}", all - shown, CountStates(model.tasks, shown)),
        Style::kDim);
  }
}

}  // namespace

ProgressModel MakeProgress(const std::string& id, const job::Job& job) {
  ProgressModel model;
  model.id = id;
  for (const job::Role& role : job.roles) {
    const size_t place = model.roles.size();
    model.roles.push_back(role.name);
    for (int index = 0; index < role.replicas; ++index) model.tasks[{place, index}] = {};
  }
  return model;
}

// Events without a visible effect are ignored.
void Apply(const rendezvous::JobEvent& event, ProgressModel* model) {
  using Type = rendezvous::JobEvent::Type;
  if (event.type == Type::kJob) {
    model->state = event.job_state;
    return;
  }
  const auto role = std::find(model->roles.begin(), model->roles.end(), event.role);
  if (role == model->roles.end()) return;
  TaskModel& task = model->tasks[{static_cast<size_t>(role - model->roles.begin()), event.index}];
  if (event.type == Type::kTask) {
    task.state = event.task_state;
    task.attempt = event.attempt;
    task.end = event.end;
    task.will_restart = event.will_restart;
  } else if (event.type == Type::kProgress) {
    Update(event.body, &task.measure);
  } else if (event.type == Type::kUsage) {
    task.rss_bytes = event.rss_bytes;
  }
}

// Totals add up over the tasks that report steps; rates add up, other values are means weighted by
// rate. The time left is the longest that a task reports, or follows from the rate.
ProgressSummary Summarize(const ProgressModel& model) {
  ProgressSummary overall;
  double step = 0;
  double total = 0;
  WeightedMean loss;
  WeightedMean exchange;
  WeightedMean bytes;
  std::optional<double> eta;
  for (const auto& [key, task] : model.tasks) {
    const Measure& measure = task.measure;
    const bool over = task.state == TaskState::kEnded;
    // The phase of the unfinished tasks; among several, of one with a rate.
    if (!measure.phase.empty() && !over &&
        (overall.phase.empty() || (measure.rate && !overall.rate)))
      overall.phase = measure.phase;
    if (measure.step && measure.total && *measure.total > 0) {
      step += std::clamp(*measure.step, 0.0, *measure.total);
      total += *measure.total;
    }
    if (!measure.unit.empty()) overall.unit = measure.unit;
    const double share = std::max(1e-9, measure.rate.value_or(1));
    loss.Add(measure.loss, share);
    if (measure.lr) overall.lr = measure.lr;
    if (over) continue;
    exchange.Add(measure.exchange, share);
    bytes.Add(measure.bytes_per_step, share);
    if (measure.rate) overall.rate = overall.rate.value_or(0) + *measure.rate;
    if (measure.eta_s) eta = std::max(eta.value_or(0), *measure.eta_s);
  }
  if (total > 0) overall.fraction = step / total;
  overall.loss = loss.value();
  overall.exchange = exchange.value();
  overall.bytes_per_step = bytes.value();
  if (!eta && total > step && overall.rate.value_or(0) > 0) eta = (total - step) / *overall.rate;
  if (eta && *eta > 0 && *eta < 1e7) {
    overall.left = std::chrono::duration_cast<Duration>(
        std::chrono::seconds(static_cast<int64_t>(std::ceil(*eta))));
  }
  return overall;
}

std::vector<std::string> RenderBlock(const ProgressModel& model, Duration elapsed,
                                     const RenderOptions& options) {
  std::vector<StyledLine> lines(1);
  const Duration whole = std::chrono::floor<std::chrono::seconds>(elapsed);
  lines[0].Add(model.id, Style::kBold).Add("  ");
  lines[0].Add(model.stopping ? "stopping" : std::string(job::NameOf(model.state)),
               model.stopping ? Style::kYellow : StyleOf(model.state));
  if (whole.count() > 0) lines[0].Add("  " + WholeTime(whole), Style::kDim);
  if (!model.why.empty()) lines[0].Add("  " + model.why, Style::kDim);
  const ProgressSummary overall = Summarize(model);
  if (!overall.phase.empty() || overall.fraction || overall.rate)
    lines.push_back(OverallLine(overall, options));
  AddTaskLines(model, options, &lines);
  std::vector<std::string> out;
  for (const StyledLine& line : lines) out.push_back(line.Render(options.width, options.color));
  return out;
}

std::string RenderPlain(const ProgressModel& model) {
  const ProgressSummary overall = Summarize(model);
  std::string line = overall.phase;
  if (overall.fraction)
    line += fmt::format("{}{:.1f} %", line.empty() ? "" : " ", *overall.fraction * 100);
  for (const std::string& fact : Facts(overall)) line += (line.empty() ? "" : ", ") + fact;
  return line;
}

std::string DescribeTask(const rendezvous::JobEvent& event) {
  std::string text = fmt::format("{}-{} ", event.role, event.index);
  if (event.task_state != TaskState::kEnded || !event.end) {
    text += job::NameOf(event.task_state);
    if (event.attempt > 0) text += fmt::format(" (attempt {})", event.attempt + 1);
    return text;
  }
  text += job::Describe(*event.end);
  if (!event.will_restart)
    return text;  // if it fails the job, the job's end gives the cause in full
  if (!event.end->ok() && !event.last_line.empty()) text += "; last output: " + event.last_line;
  text += "; restarting";
  return text;
}

std::string FormatCount(double value) {
  const char* unit = "";
  if (value >= 999.5e6) {
    value /= 1e9;
    unit = " G";
  } else if (value >= 999.5e3) {
    value /= 1e6;
    unit = " M";
  } else if (value >= 999.5) {
    value /= 1e3;
    unit = " k";
  }
  const int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  if (*unit == 0 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}{}", value, digits, unit);
}

}  // namespace shoal::cli
