#include "cli/terminal/display.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

#include "base/utf8.h"
#include "cli/terminal/line_splitter.h"
#include "cli/terminal/report.h"
#include "cli/terminal/terminal_status.h"
#include "controller/files/outputs.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;
using rendezvous::JobEvent;
using rendezvous::LogKey;

constexpr size_t kLongFrame = size_t{64} << 10;
constexpr Duration kPlainEvery = std::chrono::seconds(3);

std::string TaskName(const std::string& role, int index) {
  return fmt::format("{}-{}", role, index);
}

// Recognizes "en_US.UTF-8", "C.utf8", case-insensitively like the C library.
bool SaysUtf8(std::string value) {
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
}

// The first variable that is set decides, as in setlocale(3).
bool TerminalKnowsUnicode() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const text = std::getenv(variable);
    if (text != nullptr && *text != 0) return SaysUtf8(text);
  }
  return false;
}

// True for events that get a line: starts and ends of programs, not the steps between.
bool WorthALine(const JobEvent& event) {
  if (event.type == JobEvent::Type::kNote || event.type == JobEvent::Type::kScaled) return true;
  if (event.type == JobEvent::Type::kExcluded) return true;
  if (event.type == JobEvent::Type::kStalled || event.type == JobEvent::Type::kMoving) return true;
  if (event.type != JobEvent::Type::kTask || event.task_state != job::TaskState::kEnded)
    return false;
  return event.end && (!event.end->ok() || event.will_restart) &&
         event.end->kind != job::EndKind::kCancelled;
}

std::string LineOf(const JobEvent& event) {
  return event.type == JobEvent::Type::kTask ? DescribeTask(event) : event.text;
}

// ---- Terminal -----------------------------------------------------------------------------------

// A status block at the bottom, logs and events as lines above it. Draws at most once per tick,
// except for floods of lines.
class TerminalDisplay final : public Display {
 public:
  TerminalDisplay(AsyncWriter* out, const job::Job& job, const Clock* clock)
      : job_(job),
        clock_(clock),
        began_(clock->Now()),
        out_(out),
        block_(out),
        splitter_([this](const LogKey& key, const std::string& line) { AddLog(key, line); }) {
    const char* no_color = std::getenv("NO_COLOR");
    options_.color = no_color == nullptr || *no_color == 0;
    options_.unicode = TerminalKnowsUnicode();
  }

  void OnSubmitted(const std::string& id) override {
    model_ = MakeProgress(id, job_);
    Draw();
  }
  void OnState(job::JobState state, const std::string& why) override {
    model_.state = state;
    model_.why = why;
    dirty_ = true;
  }
  void OnEvent(const JobEvent& event) override {
    Apply(event, &model_);
    if (WorthALine(event)) AddLine(LineOf(event));
    dirty_ = true;
  }
  void OnLog(const LogKey& key, int64_t, std::string_view bytes) override {
    splitter_.Add(key, bytes);
  }
  void OnNote(const std::string& text) override { AddLine(text); }
  void OnStopping(const std::string& text) override {
    model_.stopping = true;
    AddLine(text);
    Draw();
  }
  void OnTick() override {
    const auto second = std::chrono::floor<std::chrono::seconds>(clock_->Now() - began_);
    if (!dirty_ && above_.empty() && second == shown_second_) return;
    shown_second_ = second;
    Draw();
  }
  void OnEnd(const JobRecord& record, const std::string&) override {
    splitter_.Finish();
    model_.state = record.state;
    model_.stopping = false;
    model_.why = "";
    Draw();
    block_.Finish();
  }

 private:
  void AddLine(const std::string& text) { above_ += SafeForTerminal(text) + "\n"; }
  void AddLog(const LogKey& key, const std::string& line) {
    above_ += TaskName(key.role, key.index) + " | " + SafeForTerminal(line) + "\n";
    // A flood of lines is drawn in pieces, before the next tick.
    if (above_.size() > 16384) Draw();
  }
  void Draw() {
    // A stopped terminal (Ctrl-S) gets only the latest block when it continues.
    if (out_->queued() > kLongFrame && above_.size() < AsyncWriter::kHighWater) return;
    block_.Size(&options_.width, &options_.height);
    block_.Draw(above_, RenderBlock(model_, clock_->Now() - began_, options_));
    above_.clear();
    dirty_ = false;
  }

  const job::Job job_;
  const Clock* const clock_;
  const TimePoint began_;
  AsyncWriter* const out_;
  TerminalStatus block_;
  LineSplitter splitter_;
  ProgressModel model_;
  RenderOptions options_;
  std::string above_;
  bool dirty_ = false;
  Duration shown_second_{0};
};

// ---- Pipe ---------------------------------------------------------------------------------------

// Lines for pipes and files: states, events, logs, and progress at most every kPlainEvery.
class PlainDisplay final : public Display {
 public:
  PlainDisplay(AsyncWriter* out, const job::Job& job, const Clock* clock)
      : writer_(out),
        job_(job),
        clock_(clock),
        last_(clock->Now()),
        splitter_([this](const LogKey& key, const std::string& line) {
          out_ += TaskName(key.role, key.index) + " | " + line + "\n";
        }) {}

  void OnSubmitted(const std::string& id) override {
    model_ = MakeProgress(id, job_);
    Line(id + " submitted");
  }
  void OnState(job::JobState state, const std::string& why) override {
    model_.state = state;
    // The states between submitted and running need no action of the reader.
    if (state == job::JobState::kAdmitted || state == job::JobState::kStarting) return;
    // The last line gives the reason in full.
    const bool say_why = !why.empty() && state != job::JobState::kFinishing;
    Line(model_.id + " " + std::string(job::NameOf(state)) + (say_why ? ": " + why : ""));
  }
  void OnEvent(const JobEvent& event) override {
    Apply(event, &model_);
    if (WorthALine(event)) Line(LineOf(event));
  }
  void OnLog(const LogKey& key, int64_t, std::string_view bytes) override {
    splitter_.Add(key, bytes);
    Flush();
  }
  void OnNote(const std::string& text) override { Line(text); }
  void OnStopping(const std::string& text) override { Line(text); }
  void OnTick() override {
    if (writer_->full() || clock_->Now() - last_ < kPlainEvery) return;
    last_ = clock_->Now();
    if (const std::string line = RenderPlain(model_); !line.empty() && line != shown_) {
      shown_ = line;
      Line(line);
    }
  }
  void OnEnd(const JobRecord&, const std::string&) override {
    splitter_.Finish();
    Flush();
  }

 private:
  void Line(const std::string& text) {
    out_ += text + "\n";
    Flush();
  }
  void Flush() { writer_->Write(std::exchange(out_, {})); }

  AsyncWriter* const writer_;
  const job::Job job_;
  const Clock* const clock_;
  TimePoint last_;
  LineSplitter splitter_;
  ProgressModel model_;
  std::string out_;
  std::string shown_;
};

// ---- Program ------------------------------------------------------------------------------------

// One JSON object per line. Progress and usage are dropped in favour of the latest while the reader
// is slow.
class JsonDisplay final : public Display {
 public:
  JsonDisplay(AsyncWriter* out, const job::Job& job)
      : out_(out), job_(job), splitter_([this](const LogKey& key, const std::string& line) {
          Print({{"event", "log"},
                 {"role", key.role},
                 {"index", key.index},
                 {"attempt", key.attempt},
                 {"text", ValidUtf8(line)}});
        }) {}

  void OnSubmitted(const std::string& id) override {
    Print({{"event", "submitted"}, {"job", id}, {"name", job_.name}});
  }
  void OnState(job::JobState state, const std::string& why) override {
    json::object event{{"event", "state"}, {"state", job::NameOf(state)}};
    if (!why.empty()) event["why"] = why;
    Print(event);
  }
  void OnEvent(const JobEvent& event) override {
    using Type = JobEvent::Type;
    // Covered by OnState and the last line.
    if (event.type == Type::kJob || event.type == Type::kVerdict) return;
    const bool latest_counts = event.type == Type::kProgress || event.type == Type::kUsage;
    if (latest_counts && out_->full()) {
      late_[{event.type, event.role, event.index}] = rendezvous::EventToJson(event);
    } else {
      Print(rendezvous::EventToJson(event));
    }
  }
  void OnLog(const LogKey& key, int64_t, std::string_view bytes) override {
    splitter_.Add(key, bytes);
  }
  void OnNote(const std::string& text) override { Print({{"event", "note"}, {"text", text}}); }
  void OnStopping(const std::string& text) override {
    Print({{"event", "stopping"}, {"text", text}});
  }
  void OnTick() override {
    if (late_.empty() || out_->full()) return;
    for (const auto& [key, event] : std::exchange(late_, {})) Print(event);
  }
  void OnEnd(const JobRecord& record, const std::string& stopped_by) override {
    OnTick();
    splitter_.Finish();
    Print(DoneEvent(record, job_, stopped_by));
  }

 private:
  void Print(const json::object& event) { out_->Write(ToText(event) + "\n"); }

  AsyncWriter* const out_;
  const job::Job job_;
  LineSplitter splitter_;
  // Latest events that did not fit.
  std::map<std::tuple<JobEvent::Type, std::string, int>, json::object> late_;
};

// No output: for --quiet.
class QuietDisplay final : public Display {
 public:
  void OnSubmitted(const std::string&) override {}
  void OnState(job::JobState, const std::string&) override {}
  void OnEvent(const JobEvent&) override {}
  void OnLog(const LogKey&, int64_t, std::string_view) override {}
  void OnNote(const std::string&) override {}
  void OnStopping(const std::string&) override {}
  void OnTick() override {}
  void OnEnd(const JobRecord&, const std::string&) override {}
};

// The trainers were stopped before they had trained anything, and kept the existing model.
bool NothingSaved(const JobRecord& record, const job::Job& job) {
  return job.framework == job::Framework::kShoal && job.outputs.contains("model") &&
         !record.result.contains("output");
}

// Empty if the job names none or it does not exist.
std::string ModelDirectory(const JobRecord& record, const job::Job& job) {
  const auto model = job.outputs.find("model");
  if (model == job.outputs.end() || NothingSaved(record, job)) return "";
  return controller::MissingOutputs({*model}).empty() ? model->second : "";
}

}  // namespace

std::unique_ptr<Display> MakeDisplay(DisplayKind kind, AsyncWriter* out, const job::Job& job,
                                     const Clock* clock) {
  switch (kind) {
    case DisplayKind::kTerminal:
      return std::make_unique<TerminalDisplay>(out, job, clock);
    case DisplayKind::kPlain:
      return std::make_unique<PlainDisplay>(out, job, clock);
    case DisplayKind::kJson:
      return std::make_unique<JsonDisplay>(out, job);
    case DisplayKind::kQuiet:
      break;
  }
  return std::make_unique<QuietDisplay>();
}

json::object DoneEvent(const JobRecord& record, const job::Job& job,
                       const std::string& stopped_by) {
  json::object done{{"event", "done"}};
  for (const auto& field : record.result) done[field.key()] = field.value();
  done["event"] = "done";
  done["job"] = record.id;
  done["state"] = job::NameOf(record.state);
  done["reason"] = record.reason;
  if (!stopped_by.empty()) done["stopped_by"] = stopped_by;
  if (const std::string model = ModelDirectory(record, job); !model.empty()) done["output"] = model;
  if (record.started != WallTime{} && job::IsFinal(record.state)) {
    done["seconds"] = std::chrono::duration<double>(record.ended - record.started).count();
  }
  return done;
}

namespace {

// Of a training whose workers exchanged more than they trained: that fewer would do. Otherwise
// empty.
std::string FewerWorkersNote(const JobRecord& record, const job::Job& job) {
  const double share = GetDoubleOr(record.result, "exchange_share", 0);
  const job::Role* const worker = job.FindRole("worker");
  if (share <= 0.5 || worker == nullptr || worker->replicas < 2) return "";
  const double busy = std::max(1.0, std::ceil((1 - share) * worker->replicas));
  return fmt::format(
      "; its {} workers exchanged or waited in {:.0f} % of their time: {:.0f} {}, with more "
      "threads "
      "(--threads) where there are processors, {} faster",
      worker->replicas, share * 100, busy, busy > 1 ? "workers" : "worker",
      busy > 1 ? "are likely" : "is likely");
}

}  // namespace

// The parts of the sentence: id, state or stop, duration, reason or results, model.
std::string EndSentence(const JobRecord& record, const job::Job& job, const std::string& stopped_by,
                        bool saved) {
  std::string text = record.id + " ";
  text += saved ? "was stopped by " + stopped_by +
                      (NothingSaved(record, job) ? " before anything was trained; nothing is saved;"
                                                 : " and has saved")
                : std::string(job::NameOf(record.state));
  if (record.state == job::JobState::kSuspended)
    return text + "; `shoal resume " + record.id + "` resumes it";
  if (record.started != WallTime{})
    text += " after " + FormatDuration(record.ended - record.started);
  if (record.state != job::JobState::kSucceeded && !saved)
    return text + (record.reason.empty() ? "" : ": " + record.reason);
  std::string facts;
  const double rate = GetDoubleOr(record.result, "words_per_second", 0);
  const double examples = GetDoubleOr(record.result, "examples_per_second", 0);
  const double auc = GetDoubleOr(record.result, "auc", 0);
  const double loss = GetDoubleOr(record.result, "loss", 0);
  if (rate > 0) facts += FormatCount(rate) + " words/s";
  if (examples > 0) facts += FormatCount(examples) + " examples/s";
  if (const std::string objective = GetStringOr(record.result, "objective", "");
      !objective.empty() && objective != "logistic")
    facts += (facts.empty() ? "" : ", ") + ("loss " + objective);
  for (const auto& [name, title] : {std::pair{"r2", "R²"},
                                    {"rmse", "RMSE"},
                                    {"deviance", "Poisson deviance"},
                                    {"accuracy", "accuracy"}}) {
    const double value = GetDoubleOr(record.result, name, 0);
    if (value != 0 && auc <= 0)
      facts += fmt::format("{}{} {:.4g}", facts.empty() ? "" : ", ", title, value);
  }
  if (auc > 0) facts += fmt::format("{}AUC {:.4f}", facts.empty() ? "" : ", ", auc);
  if (loss > 0) facts += fmt::format("{}loss {:.4g}", facts.empty() ? "" : ", ", loss);
  const std::string model = ModelDirectory(record, job);
  if (!model.empty()) facts += (facts.empty() ? "" : "; ") + ("the model is in " + model);
  facts += FewerWorkersNote(record, job);
  return facts.empty() ? text : text + ": " + facts;
}

}  // namespace shoal::cli
