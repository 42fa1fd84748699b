#include "learn/logistic/logistic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/shard.h"
#include "learn/logistic/params.h"
#include "learn/logistic/worker.h"
#include "learn/parameter_server.h"
#include "learn/task.h"
#include "model/save.h"

namespace shoal::learn::logistic {
namespace {

// The data entry that is held out; all others are trained on.
constexpr const char* kTest = "test";

Status ValidateData(const job::Job& job) {
  std::vector<std::string> train;
  std::vector<std::string> held_out;
  for (const job::DataSource& data : job.data) {
    if (data.format != "libsvm") {
      return InvalidArgument(
          fmt::format("data.{}.format: got {}, expected libsvm: logistic reads nothing else",
                      data.name, data.format));
    }
    auto& sources = data.name == kTest ? held_out : train;
    sources.insert(sources.end(), data.sources.begin(), data.sources.end());
  }
  if (train.empty())
    return InvalidArgument("data: missing; logistic needs at least one libsvm file to train on");
  TRY(data::Corpus::Open(train).status());
  return held_out.empty() ? Status::Ok() : data::Corpus::Open(held_out).status();
}

Status Validate(const job::Job& job) {
  TRY(Parse(job.learn, job.file).status());
  TRY(ValidateRoles(job, "logistic"));
  const auto output = job.outputs.find("model");
  if (output == job.outputs.end() || output->second.empty())
    return InvalidArgument("outputs.model: missing; expected the directory for the weights");
  TRY(ValidateData(job));
  return model::CheckModelOutput(output->second);
}

json::object ResultOf(const Task& task, const WorkerOutcome& outcome) {
  const bool held_out = outcome.held_out.examples > 0;
  json::object result{{"examples_per_second", outcome.examples_per_second},
                      {"train_loss", outcome.train_loss},
                      {"loss", held_out ? outcome.held_out.log_loss : outcome.train_loss},
                      {"output", task.output.string()},
                      {"digest", outcome.digest},
                      {"drained", outcome.drained}};
  if (!held_out) return result;
  result["log_loss"] = outcome.held_out.log_loss;
  result["accuracy"] = outcome.held_out.accuracy;
  if (std::isfinite(outcome.held_out.auc)) result["auc"] = outcome.held_out.auc;
  return result;
}

Status TrainAsWorker(Task& task) {
  WorkerSetup setup;
  TRY_ASSIGN(setup.params, Parse(task.learn, ""));
  setup.index = task.index;
  setup.workers = task.workers;
  setup.servers = std::max(1, task.servers);
  setup.own_threads = task.OwnThreads();
  for (const auto& [name, sources] : task.data) {
    auto& to = name == kTest ? setup.held_out : setup.sources;
    to.insert(to.end(), sources.begin(), sources.end());
  }
  setup.output = task.output;
  setup.checkpoints = !task.checkpoint_dir.empty();
  setup.reporter = &task.reporter();
  setup.stop = &task.stop;

  std::unique_ptr<InProcessServer> server;
  ps::ClientOptions options;
  options.poll_for = kPollFor;
  options.index = task.index;
  options.token = task.token;
  options.reconnect_timeout = std::chrono::seconds(120);
  options.consistency = ps::Consistency::Ssp(kStaleness);
  ps::Members* members = &task.members();
  if (task.servers == 0) {
    TRY_ASSIGN(server, InProcessServer::Start(task));
    options.hub = server->hub();
    members = &server->members();
  }
  TRY_ASSIGN(const std::unique_ptr<ps::Client> client,
             ps::Client::Connect(std::move(options), members));
  setup.client = client.get();
  TRY_ASSIGN(const WorkerOutcome outcome, RunWorker(setup));
  if (task.index == 0) task.reporter().Result(ResultOf(task, outcome));
  return Status::Ok();
}

}  // namespace

const Algorithm& GetAlgorithm() {
  static const Algorithm algorithm = {
      "logistic",         "Sparse logistic regression by FTRL-proximal or AdaGrad.",
      ParamTable(),       Validate,
      RunParameterServer, TrainAsWorker,
      "libsvm",           true};
  return algorithm;
}

}  // namespace shoal::learn::logistic
