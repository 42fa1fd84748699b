#include "learn/sparse/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/corpus/corpus.h"
#include "learn/sparse/base_model.h"
#include "learn/sparse/csv_schema_json.h"
#include "learn/sparse/objective/label_guess.h"
#include "learn/sparse/objective/labels.h"
#include "learn/sparse/worker.h"
#include "learn/task/model_output.h"
#include "learn/task/parameter_server.h"

namespace shoal::learn::sparse {
namespace {

struct Files {
  std::vector<std::string> train;
  std::vector<std::string> held_out;
  std::vector<std::string> validation;
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
    auto& to = entry.name == kHeldOut      ? files.held_out
               : entry.name == kValidation ? files.validation
                                           : files.train;
    to.insert(to.end(), entry.sources.begin(), entry.sources.end());
  }
  return files;
}

Status ValidateData(const Files& files, const CommonParams& params, DataLocation where) {
  TRY_ASSIGN(const data::ExampleFormat format, FormatOf(files.format));
  for (const auto* paths : {&files.train, &files.held_out, &files.validation}) {
    if (paths->empty() || where == DataLocation::kRemote) continue;
    TRY_ASSIGN(const data::Corpus corpus, OpenExamples(*paths, format));
    TRY(OptionsOf(params, format, corpus, true).status());
  }
  return Status::Ok();
}

// That the data is what the model that is continued learns from.
Status CheckBaseData(const Files& files, const CommonParams& params) {
  if (params.from.empty()) return Status::Ok();
  TRY_ASSIGN(const json::object metadata, ReadBaseMetadata(params.from));
  CommonParams as_trained = params;
  TRY_ASSIGN(as_trained.trained, CsvSchemaFromJson(metadata));
  TRY(CheckSameFormat(params.from, as_trained.trained, files.format));
  if (!as_trained.trained) return Status::Ok();
  as_trained.continues = true;
  TRY_ASSIGN(const data::Corpus corpus, data::Corpus::Open(files.train));
  TRY_ASSIGN(const data::ExampleOptions options,
             OptionsOf(as_trained, data::ExampleFormat::kCsv, corpus, true));
  return CheckSameColumns(params.from, *as_trained.trained, options.csv->schema);
}

json::object ResultOf(const Task& task, const WorkerOutcome& outcome, const Target& target) {
  const bool held_out = outcome.held_out.examples > 0;
  json::object result{{"objective", NameOf(target.loss.kind)},
                      {"examples_per_second", outcome.examples_per_second},
                      {"train_loss", outcome.train_loss},
                      {"loss", held_out ? outcome.held_out.loss : outcome.train_loss},
                      {"output", task.output.string()},
                      {"digest", outcome.digest},
                      {"drained", outcome.drained}};
  for (const auto& [name, value] : TrainedCountMetadata(outcome.job)) result[name] = value;
  if (outcome.exchange.exchanges > 0)
    result["exchange_share"] = std::min(1.0, outcome.exchange.exchange + outcome.exchange.waited);
  if (outcome.best_epoch > 0) {
    result["best_epoch"] = outcome.best_epoch;
    result["validation_loss"] = outcome.validation.loss;
  }
  if (!held_out) return result;
  for (const Metric& metric : MetricsOf(outcome.held_out)) result[metric.key] = metric.value;
  return result;
}

}  // namespace

Status ResolveLoss(const std::vector<job::DataSource>& data, CommonParams* params) {
  if (params->loss != "auto") return Status::Ok();
  TRY_ASSIGN(const Files files, FilesOf(data));
  TRY_ASSIGN(const data::ExampleFormat format, FormatOf(files.format));
  return ResolveLoss(format, files.train, params);
}

Status ValidateJob(const job::Job& job, const CommonParams& params, std::string_view algorithm,
                   DataLocation data) {
  TRY(ValidateRoles(job, algorithm));
  const auto output = job.outputs.find("model");
  if (output == job.outputs.end() || output->second.empty()) return MissingOutputError("model");
  for (const job::DataSource& entry : job.data) {
    if (entry.name != kTrain && entry.name != kHeldOut && entry.name != kValidation) {
      return InvalidArgument(fmt::format(
          "data.{}: expected data.{}, data.{} to measure the model with, or data.{} to end the "
          "training by",
          entry.name, kTrain, kHeldOut, kValidation));
    }
  }
  TRY_ASSIGN(const Files files, FilesOf(job.data));
  if (files.train.empty()) {
    return InvalidArgument(
        fmt::format("data: missing; {} needs at least one file to train on, such as data: {{train: "
                    "train.libsvm}}",
                    algorithm));
  }
  TRY(ValidationShare(params.validation).status());
  TRY(FoldRange(params.fold).status());
  if (!params.fold.empty() && !files.held_out.empty())
    return InvalidArgument("fold: a fold and data.test are given; keep one of them");
  if (const job::Role* const worker = job.FindRole("worker");
      !params.fold.empty() && worker != nullptr && worker->replicas > 1) {
    return InvalidArgument(fmt::format(
        "roles.worker.replicas: got {}, expected 1 with a fold, which one worker measures",
        worker->replicas));
  }
  if (!params.validation.empty() && !files.validation.empty())
    return InvalidArgument("validation: a share and data.validation are given; keep one of them");
  if (params.class_weight != "balanced") TRY(ParseClassWeights(params.class_weight).status());
  CommonParams resolved = params;
  if (data == DataLocation::kLocal) TRY(ResolveLoss(job.data, &resolved));
  if (data == DataLocation::kLocal) TRY(CheckBaseData(files, params));
  TRY(ValidateData(files, resolved, data));
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
  setup.held_out = {files.held_out, files.validation};
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
  if (task.index == 0)
    task.reporter().Result(ResultOf(task, outcome, {LossFor(setup.params), {}, {}}));
  return Status::Ok();
}

}  // namespace shoal::learn::sparse
