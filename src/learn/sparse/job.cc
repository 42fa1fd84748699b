#include "learn/sparse/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/corpus/corpus.h"
#include "learn/sparse/worker.h"
#include "learn/task/model_output.h"
#include "learn/task/parameter_server.h"

namespace shoal::learn::sparse {
namespace {

struct Files {
  std::vector<std::string> train;
  std::vector<std::string> held_out;
  std::string format;  // of all of them
};

Result<Files> FilesOf(const std::vector<job::DataSource>& entries) {
  Files files;
  for (const job::DataSource& entry : entries) {
    if (const auto format = FormatOf(entry.format); !format.ok())
      return format.status().With(fmt::format("data.{}.format", entry.name));
    if (!files.format.empty() && entry.format != files.format) {
      return InvalidArgument(fmt::format("data.{}.format: got {}, expected {} as in the other data",
                                         entry.name, entry.format, files.format));
    }
    files.format = entry.format;
    auto& to = entry.name == kHeldOut ? files.held_out : files.train;
    to.insert(to.end(), entry.sources.begin(), entry.sources.end());
  }
  return files;
}

Status ValidateData(const Files& files, const CommonParams& params, DataLocation where) {
  TRY_ASSIGN(const data::ExampleFormat format, FormatOf(files.format));
  for (const auto* paths : {&files.train, &files.held_out}) {
    if (paths->empty() || where == DataLocation::kRemote) continue;
    TRY_ASSIGN(const data::Corpus corpus, data::Corpus::Open(*paths));
    TRY(OptionsOf(params, format, corpus, true).status());
  }
  return Status::Ok();
}

json::object ResultOf(const Task& task, const WorkerOutcome& outcome) {
  const bool held_out = outcome.held_out.examples > 0;
  json::object result{{"examples_per_second", outcome.examples_per_second},
                      {"train_loss", outcome.train_loss},
                      {"loss", held_out ? outcome.held_out.log_loss : outcome.train_loss},
                      {"output", task.output.string()},
                      {"digest", outcome.digest},
                      {"drained", outcome.drained}};
  for (const auto& [name, value] : TrainedCountMetadata(outcome.job)) result[name] = value;
  if (!held_out) return result;
  result["log_loss"] = outcome.held_out.log_loss;
  result["accuracy"] = outcome.held_out.accuracy;
  if (std::isfinite(outcome.held_out.auc)) result["auc"] = outcome.held_out.auc;
  return result;
}

}  // namespace

Status ValidateJob(const job::Job& job, const CommonParams& params, std::string_view algorithm,
                   DataLocation data) {
  TRY(ValidateRoles(job, algorithm));
  const auto output = job.outputs.find("model");
  if (output == job.outputs.end() || output->second.empty()) return MissingOutputError("model");
  for (const job::DataSource& entry : job.data) {
    if (entry.name != kTrain && entry.name != kHeldOut) {
      return InvalidArgument(
          fmt::format("data.{}: expected data.{}, or data.{} to measure the model with", entry.name,
                      kTrain, kHeldOut));
    }
  }
  TRY_ASSIGN(const Files files, FilesOf(job.data));
  if (files.train.empty()) {
    return InvalidArgument(
        fmt::format("data: missing; {} needs at least one file to train on, such as data: {{train: "
                    "train.libsvm}}",
                    algorithm));
  }
  TRY(ValidateData(files, params, data));
  return CheckModelDestination(output->second, data == DataLocation::kLocal);
}

Status TrainAsWorker(Task& task, const Trainer& trainer) {
  TRY_ASSIGN(const Files files, FilesOf(task.data));
  WorkerSetup setup;
  setup.params = trainer.params;
  setup.algorithm = trainer.algorithm;
  setup.parameters = trainer.parameters;
  setup.learner = trainer.learner;
  TRY_ASSIGN(setup.format, FormatOf(files.format));
  setup.index = task.index;
  setup.workers = task.workers;
  setup.servers = std::max(1, task.servers);
  setup.default_threads = task.DefaultThreads();
  setup.sources = files.train;
  setup.data_cache = task.data_cache;
  setup.held_out = files.held_out;
  setup.output = task.output;
  setup.checkpoints = !task.checkpoint_dir.empty();
  setup.reporter = &task.reporter();
  setup.ended = [&task] { return task.EndedWorkers(); };
  setup.stop = &task.stop;
  std::atomic<uint64_t> restarted{0};
  setup.restarted_servers = &restarted;

  TRY_ASSIGN(const WorkerClient connected,
             ConnectWorker(task, ps::Consistency::Ssp(kStaleness), &restarted));
  setup.client = connected.client.get();
  TRY_ASSIGN(const WorkerOutcome outcome, RunWorker(setup));
  task.cut_short = outcome.drained;
  if (task.index == 0) task.reporter().Result(ResultOf(task, outcome));
  return Status::Ok();
}

}  // namespace shoal::learn::sparse
