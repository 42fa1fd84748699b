// A running job as data and as text: a model that events update, and pure functions that format it
// as a terminal's status block or a line for a pipe.
//
// display.cc does the input and output. Nothing here depends on the clock or a terminal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "job/execution/state.h"
#include "job/spec/job.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::cli {

// The last progress report of a program ({"progress":{…}}); fields that it omitted are absent.
struct Measure {
  std::optional<double> step;
  std::optional<double> total;
  std::optional<double> rate;  // units per second
  std::optional<double> loss;
  std::optional<double> lr;
  std::optional<double> eta_s;
  std::optional<double> exchange;  // share of its time spent on the exchange with the servers, 0…1
  std::optional<double> bytes_per_step;  // to and from the servers, per unit
  std::string unit;                      // "words"
  std::string phase;                     // "count", "train", "save"
};

struct TaskModel {
  job::TaskState state = job::TaskState::kCreated;
  int attempt = 0;
  std::optional<job::TaskEnd> end;
  bool will_restart = false;
  Measure measure;
  int64_t rss_bytes = 0;
};

// Keyed by the role's position in the job file and the index, which is the order of the lines.
struct ProgressModel {
  std::string id;
  job::JobState state = job::JobState::kPending;
  std::string why;  // reason for waiting or for the end
  bool stopping = false;
  std::vector<std::string> roles;
  std::map<std::pair<size_t, int>, TaskModel> tasks;
};

// The model of a newly submitted job.
ProgressModel MakeProgress(const std::string& id, const job::Job& job);
void Apply(const rendezvous::JobEvent& event, ProgressModel* model);

// Aggregate over the job's tasks.
struct ProgressSummary {
  std::string phase;
  std::optional<double> fraction;  // 0…1
  std::optional<double> rate;
  std::optional<double> loss;  // mean, weighted by rate
  std::optional<double> lr;
  std::optional<double> exchange;        // 0…1, mean, weighted by rate
  std::optional<double> bytes_per_step;  // mean, weighted by rate
  std::optional<Duration> left;
  std::string unit;
};
ProgressSummary Summarize(const ProgressModel& model);

struct RenderOptions {
  int width = 80;   // columns; no line is longer
  int height = 24;  // rows; two remain free
  bool color = false;
  bool unicode = true;
};

// The lines of the status block, without line feeds.
std::vector<std::string> RenderBlock(const ProgressModel& model, Duration elapsed,
                                     const RenderOptions& options);
// "train 51 %, 4.2 M words/s, exchange 9 %, 31 B/word, loss 0.2314, lr 0.0123, 3 min left"; empty
// if nothing was reported.
std::string RenderPlain(const ProgressModel& model);
// "worker-0 exited with 1; restarting"
std::string DescribeTask(const rendezvous::JobEvent& event);

// "4.21 M", "312", "0.5 k": three significant digits.
std::string FormatCount(double value);

// Makes a task's output safe for a terminal with a status block: removes control characters except
// tab and colours, replaces invalid UTF-8.
std::string SafeForTerminal(const std::string& line);

}  // namespace shoal::cli
