#include "learn/word2vec/word2vec.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/corpus/corpus.h"
#include "learn/task/model_output.h"
#include "learn/task/parameter_server.h"
#include "learn/task/task.h"
#include "learn/word2vec/params.h"
#include "learn/word2vec/worker.h"

namespace shoal::learn::word2vec {
namespace {

Status ValidateData(const job::Job& job, DataLocation where) {
  std::vector<std::string> sources;
  for (const job::DataSource& data : job.data) {
    if (data.name != "train") {
      return InvalidArgument(
          "data." + data.name +
          ": not expected beside data.train: word2vec measures no held-out text; leave it out");
    }
    if (data.format != "text") {
      return InvalidArgument(
          fmt::format("data.{}.format: got {}, expected text: word2vec reads nothing else",
                      data.name, data.format));
    }
    sources.insert(sources.end(), data.sources.begin(), data.sources.end());
  }
  if (sources.empty())
    return InvalidArgument(
        "data: missing; word2vec needs at least one text file, such as data: {train: text.txt}");
  return where == DataLocation::kLocal ? data::Corpus::Open(sources).status() : Status::Ok();
}

Status Validate(const job::Job& job, DataLocation data) {
  TRY(Parse(job.learn, job.file).status());
  TRY(ValidateRoles(job, "word2vec"));
  const auto output = job.outputs.find("model");
  if (output == job.outputs.end() || output->second.empty()) return MissingOutputError("vectors");
  TRY(ValidateData(job, data));
  return CheckModelDestination(output->second, data == DataLocation::kLocal);
}

Status TrainAsWorker(Task& task) {
  WorkerSetup setup;
  TRY_ASSIGN(setup.params, Parse(task.learn, ""));
  setup.index = task.index;
  setup.workers = task.workers;
  setup.servers = std::max(1, task.servers);
  setup.server_inside = task.servers == 0;
  setup.default_threads = task.DefaultThreads();
  setup.sources = task.sources;
  setup.data_cache = task.data_cache;
  setup.output = task.output;
  setup.scratch = task.scratch;
  setup.checkpoints = !task.checkpoint_dir.empty();
  setup.reporter = &task.reporter();
  setup.ended = [&task] { return task.EndedWorkers(); };
  setup.stop = &task.stop;
  std::atomic<uint64_t> restarted{0};
  setup.restarted_servers = &restarted;

  TRY_ASSIGN(const WorkerClient connected, ConnectWorker(task, ps::Consistency::Asp(), &restarted));
  setup.client = connected.client.get();
  TRY_ASSIGN(const WorkerOutcome outcome, RunWorker(setup));
  task.cut_short = outcome.drained;
  if (task.index != 0) return Status::Ok();
  json::object result{{"words_per_second", outcome.words_per_second},
                      {"loss", outcome.loss},
                      {"exchanged_bytes", static_cast<uint64_t>(outcome.exchanged_bytes)},
                      {"output", task.output.string()},
                      {"digest", outcome.digest},
                      {"drained", outcome.drained}};
  for (const auto& [name, value] : TrainedCountMetadata(outcome.job)) result[name] = value;
  if (setup.workers > 1) result["exchange_share"] = outcome.exchange_share;
  task.reporter().Result(result);
  return Status::Ok();
}

}  // namespace

const Algorithm& GetAlgorithm() {
  static const Algorithm algorithm = {
      "word2vec",
      "Word vectors by skip-gram or CBOW, with negative sampling or hierarchical softmax.",
      ParamTable(),
      Validate,
      RunParameterServer,
      TrainAsWorker};
  return algorithm;
}

}  // namespace shoal::learn::word2vec
