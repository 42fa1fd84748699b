// `shoal train ALGORITHM`: a training job from flags. An algorithm's flags are generated from its
// parameter table (learn/params.h); the job is processed like one from a file.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/jobs/engines.h"
#include "cli/jobs/job_runner.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/report.h"
#include "controller/files/expand_data.h"
#include "learn/algorithm.h"
#include "learn/train_job.h"
#include "model/save_model.h"

namespace shoal::cli {
namespace {

struct TrainArguments {
  std::vector<std::string> data;
  std::vector<std::string> test;
  std::string format;  // empty: derived from the file names
  std::string output;
  std::string name;
  int workers = 1;
  int folds = 0;     // 0: no cross-validation
  int servers = -1;  // -1: none for one worker, else one
  std::string checkpoint = "60s";
  bool quiet = false;
  std::string engine;
  std::map<std::string, std::string> params;  // given parameters by their names in the table
};

std::string FlagOf(std::string_view name) {
  std::string flag(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// "--dim,--size,--vector-size"
std::string FlagsOf(const learn::Param& param) {
  std::string flags = "--" + FlagOf(param.name);
  std::string_view rest = param.aliases;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (end > 0) flags += ",--" + FlagOf(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return flags;
}

// "--cbow" → "--no-cbow", which means false and is not listed in --help.
void AddNegation(CLI::App* sub, const learn::Param& param,
                 std::shared_ptr<TrainArguments> arguments) {
  std::string flags = FlagsOf(param);
  for (size_t at = 0; (at = flags.find("--", at)) != std::string::npos; at += 5)
    flags.replace(at, 2, "--no-");
  const std::string name(param.name);
  sub->add_flag_callback(flags, [arguments, name] { arguments->params[name] = "false"; })
      ->group("");
}

// Adds the flag of an algorithm's parameter, with aliases, default and range from its table.
void AddParam(CLI::App* sub, const learn::Param& param, const std::string& group,
              std::shared_ptr<TrainArguments> arguments) {
  const std::string help =
      fmt::format("{} [{}; {}]", param.doc, param.default_text, learn::DescribeExpected(param));
  const std::string name(param.name);
  const bool flag = param.type == learn::ParamType::kBool;
  CLI::Option* const option = sub->add_option_function<std::string>(
      FlagsOf(param),
      [arguments, name, flag](const std::string& value) {
        arguments->params[name] = flag && value.empty() ? "true" : value;
      },
      help);
  option->type_name("");
  if (flag) option->expected(0, 1);  // --cbow means true, as --cbow=true and --cbow true
  if (flag || param.choices.find("false") != std::string_view::npos)
    AddNegation(sub, param, arguments);
  option->group(param.retired ? "" : group + " [default; range]");  // "": not in --help
}

learn::TrainRequest RequestOf(const TrainArguments& arguments) {
  return {.name = arguments.name,
          .data = arguments.data,
          .test = arguments.test,
          .format = arguments.format,
          .output = arguments.output,
          .workers = arguments.workers,
          .servers = arguments.servers,
          .checkpoint = arguments.checkpoint,
          .params = arguments.params,
          .resources = {}};
}

int TrainOne(const Context& context, const learn::Algorithm& algorithm,
             const TrainArguments& arguments) {
  Result<job::Job> job = learn::MakeTrainJob(algorithm, RequestOf(arguments));
  if (!job.ok()) return PrintError(job.status());
  controller::ExpandData(&*job);
  return RunJob(context, std::move(*job), {.quiet = arguments.quiet, .engine = arguments.engine});
}

// Values of one measure, in the order of the folds.
using FoldMetrics = std::map<std::string, std::vector<double>>;

std::pair<double, double> MeanAndDeviation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return {sum / n, values.size() < 2 ? 0 : std::sqrt(squares / (n - 1))};
}

std::string FoldsText(const FoldMetrics& metrics, const TrainArguments& arguments, bool as_json) {
  json::object object;
  std::vector<std::vector<std::string>> rows = {{"MEASURE", "MEAN", "DEVIATION", "FOLDS"}};
  for (const auto& [name, values] : metrics) {
    const auto [mean, deviation] = MeanAndDeviation(values);
    object[name] = {{"mean", mean},
                    {"deviation", deviation},
                    {"folds", json::array(values.begin(), values.end())}};
    std::string each;
    for (const double value : values)
      each += fmt::format("{}{:.4g}", each.empty() ? "" : " ", value);
    rows.push_back({name, fmt::format("{:.5g}", mean), fmt::format("{:.2g}", deviation), each});
  }
  if (as_json) {
    return JsonLine({{"event", "folds"},
                     {"folds", arguments.folds},
                     {"output", arguments.output},
                     {"measures", std::move(object)}});
  }
  return Table(rows);
}

// Cross-validation: a job for each fold, one after another, whose models stay in OUTPUT/fold-I.
int TrainFolds(const Context& context, const learn::Algorithm& algorithm,
               const TrainArguments& arguments) {
  FoldMetrics metrics;
  for (int fold = 1; fold <= arguments.folds; ++fold) {
    TrainArguments one = arguments;
    one.params["fold"] = fmt::format("{}/{}", fold, arguments.folds);
    one.output = arguments.output + fmt::format("/fold-{}", fold);
    one.name = fmt::format(
        "{}-fold-{}", arguments.name.empty() ? std::string(algorithm.name) : arguments.name, fold);
    const int code = TrainOne(context, algorithm, one);
    if (code != 0) return code;
    const Result<json::object> metadata = model::ReadModelMetadata(one.output);
    if (!metadata.ok()) return PrintError(metadata.status());
    const json::object* const held_out = FindObject(*metadata, "held_out");
    if (held_out == nullptr) {
      return PrintError(InvalidArgument(fmt::format(
          "--folds: fold {} of {} has no example; take fewer folds", fold, arguments.folds)));
    }
    for (const auto& field : *held_out) {
      const bool counts = field.key() == "examples" || field.key() == "positives";
      if (counts || !field.value().is_number()) continue;
      metrics[std::string(field.key())].push_back(field.value().to_number<double>());
    }
  }
  return PrintResult(FoldsText(metrics, arguments, context.json));
}

int Train(const Context& context, const learn::Algorithm& algorithm,
          const TrainArguments& arguments) {
  if (arguments.folds == 0) return TrainOne(context, algorithm, arguments);
  return TrainFolds(context, algorithm, arguments);
}

constexpr const char* kLinearFooter = R"help(Examples:
  shoal train linear --data people.csv --label age --output ages
  shoal train linear --data people.csv --label zip --validation 10% --output zips
  shoal train linear --data people.csv --label income --folds 3 --output folds
  shoal train logistic --data train.svm --test test.svm --output model
  shoal train logistic --data clicks/*.svm.zst --output model --hash-bits 24 --l1 0.1
  shoal train logistic --data people.csv --label income --categorical zip --output model
  shoal train logistic --data train.svm --output model --workers 2 --servers 1 --json
  shoal train logistic --data events.jsonl --label clicked --output model
  shoal train fm --data train.svm --test test.svm --output model --factors 16
  shoal train ffm --data train.ffm --test test.ffm --output model
  shoal train linear --data newer.csv --from ages --output ages

--loss says what is learnt: one of two classes (logistic, hinge), one of several (softmax), a number
(squared, quantile) or a count (poisson); auto takes it from the labels of the first lines, and the
last line says which it was. Tables are csv, tsv, jsonl (an object a line; fields of nested ones are
called outer.inner) tfrecord (tf.train.Example) and parquet. A line of libsvm is `LABEL NUMBER:VALUE …`, of libffm `LABEL
FIELD:NUMBER:VALUE …`; labels of two classes are -1, 0 or 1 there. Only ffm uses fields; in tables
each column is a field. A cell that is a number is the value of its column's feature; any other text,
and every cell of the --categorical columns, is a feature of its own. Files may be plain, .gz or
.zst. The files of --test are predicted after each epoch and at the end. With --validation the
training ends when that share of the data, or that file, is predicted no better, and the best epoch
is kept. The output directory gets the model for `shoal predict`. Ctrl-C lets the workers save; a
second Ctrl-C kills them.)help";

constexpr const char* kTextFooter = R"help(Examples:
  shoal train word2vec --data text8 --output vectors
  shoal train word2vec --data news/*.txt.zst --output vectors --dim 200 --epochs 3
  shoal train word2vec --data text8 --output vectors --workers 2 --servers 1 --wire int8

Each epoch reads every word of the files once, for any number of workers. Files may be plain, .gz or
.zst. The output directory gets vectors.bin and vectors.txt (word2vec's formats), vocab.txt and
model.json. Ctrl-C lets the workers save; a second Ctrl-C kills them.)help";

void AddAlgorithm(CLI::App* train, const learn::Algorithm& algorithm, Run* chosen) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* sub = train->add_subcommand(std::string(algorithm.name), std::string(algorithm.doc));
  sub->add_option("--data", arguments->data,
                  algorithm.formats == "text" ? "Text files to train on, in this order"
                                              : "Files with examples to train on")
      ->required()
      ->type_name("FILE");
  if (const auto formats = learn::FormatsOf(algorithm); formats.size() > 1) {
    sub->add_option("--format", arguments->format,
                    fmt::format("Format of the files: {} [from the first file's name, else {}]",
                                fmt::join(formats, ", "), formats.front()))
        ->check(CLI::IsMember(formats).description(""))
        ->type_name("");
  }
  if (algorithm.held_out) {
    sub->add_option("--test", arguments->test, "Held-out files to evaluate the model on")
        ->type_name("FILE");
    sub->add_option(
           "--folds", arguments->folds,
           "Cross-validation: train this many times, each on all but one part of the data, "
           "one after another, and print mean and deviation of the measures; the models "
           "are in DIR/fold-1, …")
        ->check(CLI::Range(2, 100).description(""))
        ->type_name("K");
  }
  sub->add_option("-o,--output", arguments->output, "Output directory of the model")
      ->required()
      ->type_name("DIR");
  sub->add_option("--workers", arguments->workers, "Number of worker processes [1]")
      ->check(CLI::Range(1, job::kMaxReplicas).description(""))
      ->type_name("N");
  sub->add_option(
         "--servers", arguments->servers,
         "Number of parameter server processes; 0: inside the worker [0 for one worker, else 1]")
      ->check(CLI::Range(0, job::kMaxReplicas).description(""))
      ->type_name("N");
  sub->add_option(
         "--checkpoint", arguments->checkpoint,
         "Interval between checkpoints of the parameters, for recovery; 0s: no checkpoints [60s]")
      ->type_name("TIME");
  sub->add_option("--name", arguments->name, "Name of the job")->type_name("NAME");
  AddEngineOption(sub, &arguments->engine);
  sub->add_flag("-q,--quiet", arguments->quiet, "Print errors only");
  sub->add_flag("--json")->description("Print events as JSON, one per line; the last is \"done\"");
  for (const learn::Param& param : algorithm.params) AddParam(sub, param, "Parameters", arguments);
  for (const learn::Param& param : learn::CommonParams()) {
    AddParam(sub, param, "Servers and data", arguments);
  }
  sub->footer(algorithm.formats == "text" ? kTextFooter : kLinearFooter);
  sub->callback([arguments, chosen, &algorithm] {
    *chosen = [arguments, &algorithm](const Context& context) {
      return Train(context, algorithm, *arguments);
    };
  });
}

}  // namespace

void AddTrain(CLI::App& app, Run* chosen) {
  CLI::App* train = app.add_subcommand("train", "Train a model with a built-in algorithm");
  train->require_subcommand(1);
  train->footer(R"help(Examples:
  shoal train word2vec --data text8 --output vectors
  shoal train logistic --data train.svm --test test.svm --output model

`shoal train ALGORITHM --help` explains an algorithm.)help");
  for (const learn::Algorithm& algorithm : learn::Algorithms())
    AddAlgorithm(train, algorithm, chosen);
}

}  // namespace shoal::cli
