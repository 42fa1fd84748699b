// `shoal predict`: predicts examples with a linear model or factorization machine and reports the
// quality.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/json.h"
#include "base/output_file.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "cli/models/model_page.h"
#include "cli/models/show_model.h"
#include "cli/terminal/report.h"
#include "learn/sparse/predict.h"
#include "model/factor_model.h"
#include "model/save_model.h"

namespace shoal::cli {
namespace {

using learn::sparse::LossKind;
using learn::sparse::Predictions;

struct PredictArguments {
  std::string model;
  std::vector<std::string> data;
  std::string output;
  std::string format;
  std::string key;
  std::string report;
  bool classes = false;
  int64_t threads = 0;
};

Result<Predictions> Predict(const PredictArguments& arguments) {
  TRY_ASSIGN(const model::FactorModel model, model::ReadFactorModel(arguments.model));
  learn::sparse::PredictOptions options;
  options.format = arguments.format;
  options.key = arguments.key;
  options.threads = arguments.threads > 0
                        ? static_cast<uint64_t>(arguments.threads)
                        : std::max<uint64_t>(1, std::thread::hardware_concurrency());
  // A bare weights.bin does not record how its data was read.
  Result<json::object> metadata = model::ReadModelMetadata(arguments.model);
  if (!metadata.ok()) {
    if (std::filesystem::is_directory(arguments.model)) return metadata.status();
    metadata = json::object();
  }
  return learn::sparse::Predict(model, *metadata, arguments.data, options);
}

// Refuses to overwrite the input with the predictions.
Status CheckOutputIsNoInput(const PredictArguments& arguments) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // what does not exist is no input
  if (!fs::is_regular_file(arguments.output, ignored)) return Status::Ok();
  const auto refuse = [&](const std::string& what) {
    return InvalidArgument("--output: " + arguments.output + " is " + what +
                           "; name another file for the predictions");
  };
  for (const std::string& data : arguments.data) {
    if (fs::equivalent(arguments.output, data, ignored)) return refuse("one of the data files");
  }
  if (fs::equivalent(arguments.output, arguments.model, ignored)) return refuse("the model");
  for (const auto& entry : fs::directory_iterator(arguments.model, ignored)) {
    if (fs::equivalent(arguments.output, entry.path(), ignored))
      return refuse("a file of the model " + arguments.model);
  }
  return Status::Ok();
}

// A cell of CSV.
std::string CellOf(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos && !text.starts_with(' ') && !text.ends_with(' '))
    return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

// What is written of an example.
enum class Output : uint8_t { kClass, kProbability, kProbabilities, kValue };

Result<Output> OutputOf(const Predictions& predictions, const PredictArguments& arguments) {
  const LossKind loss = predictions.target.loss.kind;
  if (arguments.classes && predictions.target.loss.predicts_numbers()) {
    return InvalidArgument(
        fmt::format("--classes: the model predicts numbers (loss {}), not classes", NameOf(loss)));
  }
  if (arguments.classes) return Output::kClass;
  if (loss == LossKind::kSoftmax) return Output::kProbabilities;
  return loss == LossKind::kLogistic ? Output::kProbability : Output::kValue;
}

// The first line, which a single column without keys does not have.
std::string HeaderOf(const Predictions& predictions, Output output) {
  if (predictions.keys.empty() && output != Output::kProbabilities) return "";
  std::string header = predictions.keys.empty() ? "" : CellOf(predictions.key_column) + ",";
  switch (output) {
    case Output::kClass:
      return header + "class\n";
    case Output::kProbability:
      return header + "probability\n";
    case Output::kValue:
      return header + (predictions.target.loss.predicts_numbers() ? "value\n" : "margin\n");
    case Output::kProbabilities:
      for (size_t c = 0; c < predictions.classes.size(); ++c)
        header += (c > 0 ? "," : "") + CellOf(predictions.classes[c]);
  }
  return header + "\n";
}

std::string LinesOf(const Predictions& predictions, Output output) {
  std::string lines = HeaderOf(predictions, output);
  const auto to = std::back_inserter(lines);
  const size_t classes = predictions.classes.size();
  for (uint64_t i = 0; i < predictions.examples; ++i) {
    if (!predictions.keys.empty()) lines += CellOf(predictions.keys[i]) + ",";
    if (output == Output::kClass) lines += CellOf(predictions.ClassOf(i));
    if (output == Output::kProbability) fmt::format_to(to, "{:.6g}", predictions.probabilities[i]);
    if (output == Output::kValue) fmt::format_to(to, "{:.9g}", predictions.values[i]);
    if (output == Output::kProbabilities) {
      for (size_t c = 0; c < classes; ++c) {
        fmt::format_to(to, "{}{:.6g}", c > 0 ? "," : "",
                       predictions.probabilities[i * classes + c]);
      }
    }
    lines += '\n';
  }
  return lines;
}

std::string OutputText(const Predictions& predictions, Output output) {
  switch (output) {
    case Output::kClass:
      return "the classes";
    case Output::kProbability:
      return "the probabilities of label " + EscapedUtf8(predictions.positive);
    case Output::kProbabilities:
      return fmt::format("the probabilities of {} classes", predictions.classes.size());
    case Output::kValue:
      return predictions.target.loss.predicts_numbers() ? "the predicted numbers" : "the margins";
  }
  return "";
}

json::object JsonOf(const Predictions& predictions, const PredictArguments& arguments) {
  const LossKind loss = predictions.target.loss.kind;
  json::object line{
      {"model", arguments.model}, {"examples", predictions.examples}, {"objective", NameOf(loss)}};
  if (loss == LossKind::kLogistic) {
    line["auc"] = line["log_loss"] = line["accuracy"] = nullptr;
    line["positive"] = EscapedUtf8(predictions.positive);
  }
  if (predictions.quality) {
    for (const auto& field : ToJson(*predictions.quality)) line[field.key()] = field.value();
  }
  if (!arguments.output.empty()) line["output"] = arguments.output;
  return line;
}

// Number of examples and the quality, if the data has labels.
std::string SummaryOf(const Predictions& predictions, const PredictArguments& arguments,
                      Output output, bool as_json) {
  if (as_json) return JsonLine(JsonOf(predictions, arguments));
  std::string text = fmt::format("{} examples", predictions.examples);
  if (predictions.quality) {
    for (const auto& metric : MetricsOf(*predictions.quality)) {
      text += metric.key == "accuracy" || metric.key == "coverage"
                  ? fmt::format(", {} {:.2f} %", metric.title, 100 * metric.value)
              : metric.key == "auc" || metric.key == "log_loss" || metric.key == "r2"
                  ? fmt::format(", {} {:.4f}", metric.title, metric.value)
                  : fmt::format(", {} {:.4g}", metric.title, metric.value);
    }
  }
  if (!arguments.output.empty())
    text += fmt::format("; {} are in {}", OutputText(predictions, output), arguments.output);
  return text + "\n";
}

// The page of --report.
Status WritePredictionReport(const Predictions& predictions, const PredictArguments& arguments) {
  if (!predictions.assessment) {
    return InvalidArgument(
        "--report: the data has no labels, or some that the model does not know, so there is "
        "nothing to report");
  }
  TRY_ASSIGN(const DescribedModel model, DescribeModelAt({arguments.model, {}}));
  TRY_ASSIGN(const std::string page,
             RenderModelPage({arguments.model, model.metadata, &model.description,
                              PredictedData{arguments.data, ToJson(*predictions.quality),
                                            *predictions.assessment}}));
  return WriteOutputFile(arguments.report, page);
}

int PrintPredictions(const Context& context, const PredictArguments& arguments) {
  if (const Status place = CheckOutputIsNoInput(arguments); !place.ok()) return PrintError(place);
  const Result<Predictions> predictions = Predict(arguments);
  if (!predictions.ok()) return PrintError(predictions.status());
  if (const auto& missing = predictions->missing_columns; !missing.empty()) {
    PrintNote(fmt::format(
        "the data lacks {} of the columns that the model was trained on, and is predicted "
        "as if their cells were empty: {}",
        missing.size(), fmt::join(missing, ", ")));
  }
  const Result<Output> output = OutputOf(*predictions, arguments);
  if (!output.ok()) return PrintError(output.status());
  if (!arguments.report.empty()) {
    const Status written = WritePredictionReport(*predictions, arguments);
    if (!written.ok()) return PrintError(written);
  }
  if (arguments.output == "-") return PrintResult(LinesOf(*predictions, *output));
  const std::string summary = SummaryOf(*predictions, arguments, *output, context.json);
  if (arguments.output.empty()) return PrintResult(summary);
  const Status written = WriteOutputFile(arguments.output, LinesOf(*predictions, *output));
  return written.ok() ? PrintConfirmation(summary) : PrintError(written);
}

constexpr const char* kPredictFooter = R"help(Examples:
  shoal predict model --data test.svm
  shoal predict model --data test.svm --output probabilities.txt
  shoal predict model --data new.svm.zst --output -
  shoal predict model --data test.svm --classes --output classes.txt
  shoal predict model --data test.svm --report test.html

MODEL is a directory written by `shoal train linear`, `logistic`, `fm` or `ffm`. The files have the
training data's format, that of their names or that of --format, and may be plain, .gz or .zst. A
table (csv, tsv, jsonl, tfrecord,
parquet) has the columns of the training; without labels no quality is reported. The output has one line for each
example: of two classes the probability of label 1, or of the class that `positive` named in
training, else the greater one; of several a probability for each, below a line with their names; of
a label that is a number the predicted number; of the loss hinge the margin, above 0 for label 1.
--classes writes the likeliest class instead. --report writes the page of `shoal report` about data
with labels. With --key, or a key in training, the example's own
key comes first, below a line that names the columns. An existing output file keeps its owner and
mode; links are followed, devices and FIFOs are written to.)help";

}  // namespace

void AddPredict(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* sub =
      app.add_subcommand("predict", "Predict with a linear model or factorization machine");
  sub->add_option("MODEL", arguments->model, "Model directory")->required()->type_name("");
  sub->add_option("--data", arguments->data, "Files with examples")->required()->type_name("FILE");
  sub->add_option("-o,--output", arguments->output,
                  "Output file of the predictions; -: standard output, without other text")
      ->check(CLI::Validator(
          [](const std::string& name) {
            return name.empty() ? "got an empty name, expected a file or -" : "";
          },
          ""))
      ->type_name("FILE");
  sub->add_option("--key", arguments->key,
                  "Tables: column that names the examples, written before each prediction [that of "
                  "the training]")
      ->type_name("COLUMN");
  sub->add_option(
         "--report", arguments->report,
         "HTML page about the predictions of data with labels, as `shoal report` writes it")
      ->type_name("FILE");
  sub->add_flag("--classes", arguments->classes, "Write the likeliest class of each example");
  sub->add_option("--format", arguments->format,
                  "Format of the files: libsvm, libffm, csv, tsv, jsonl, tfrecord, parquet [of "
                  "tables by the first "
                  "file's name, else the training data's]")
      ->check(CLI::IsMember({"libsvm", "libffm", "csv", "tsv", "jsonl", "tfrecord", "parquet"})
                  .description(""))
      ->type_name("");
  sub->add_option("--threads", arguments->threads, "Number of threads [the machine's cores]")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  sub->footer(kPredictFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return PrintPredictions(context, *arguments); };
  });
}

}  // namespace shoal::cli
