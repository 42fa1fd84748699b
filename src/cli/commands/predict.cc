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
#include "cli/terminal/report.h"
#include "learn/sparse/predict.h"
#include "model/factor_model.h"
#include "model/save_model.h"

namespace shoal::cli {
namespace {

using learn::sparse::Predictions;

struct PredictArguments {
  std::string model;
  std::vector<std::string> data;
  std::string output;
  std::string format;
  int64_t threads = 0;
};

Result<Predictions> Predict(const PredictArguments& arguments) {
  TRY_ASSIGN(const model::FactorModel model, model::ReadFactorModel(arguments.model));
  learn::sparse::PredictOptions options;
  options.format = arguments.format;
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
                           "; name another file for the probabilities");
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

std::string LinesOf(const Predictions& predictions) {
  std::string lines;
  for (const float probability : predictions.probabilities)
    fmt::format_to(std::back_inserter(lines), "{:.6g}\n", probability);
  return lines;
}

// Number of examples and the quality, if the data has labels.
std::string SummaryOf(const Predictions& predictions, const PredictArguments& arguments,
                      bool as_json) {
  const auto& quality = predictions.quality;
  const bool ranked = quality.has_value() && std::isfinite(quality->auc);
  if (as_json) {
    json::object line{{"model", arguments.model}, {"examples", predictions.probabilities.size()}};
    line["auc"] = ranked ? json::value(quality->auc) : json::value(nullptr);
    line["log_loss"] = quality ? json::value(quality->log_loss) : json::value(nullptr);
    line["accuracy"] = quality ? json::value(quality->accuracy) : json::value(nullptr);
    if (quality) line["positives"] = quality->positives;
    line["positive"] = EscapedUtf8(predictions.positive);
    if (!arguments.output.empty()) line["output"] = arguments.output;
    return JsonLine(line);
  }
  std::string text = fmt::format("{} examples", predictions.probabilities.size());
  if (ranked) text += fmt::format(", AUC {:.4f}", quality->auc);
  if (quality) {
    text += fmt::format(", log-loss {:.4f}, accuracy {:.2f} %", quality->log_loss,
                        100 * quality->accuracy);
  }
  if (!arguments.output.empty()) {
    text += fmt::format("; the probabilities of label {} are in {}",
                        EscapedUtf8(predictions.positive), arguments.output);
  }
  return text + "\n";
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
  if (arguments.output == "-") return PrintResult(LinesOf(*predictions));
  const std::string summary = SummaryOf(*predictions, arguments, context.json);
  if (arguments.output.empty()) return PrintResult(summary);
  const Status written = WriteOutputFile(arguments.output, LinesOf(*predictions));
  return written.ok() ? PrintConfirmation(summary) : PrintError(written);
}

constexpr const char* kPredictFooter = R"help(Examples:
  shoal predict model --data test.svm
  shoal predict model --data test.svm --output probabilities.txt
  shoal predict model --data new.svm.zst --output -

MODEL is a directory written by `shoal train logistic`, `fm` or `ffm`. The files have the training
data's format or that of --format, and may be plain, .gz or .zst. A csv file has the same columns as
in training; without the label's column no quality is reported. The output has one line for each
example: the probability of label 1, or of the class that `positive` named in training, else the
greater one. An existing output file keeps its owner and mode; links are
followed, devices and FIFOs are written to. AUC, log-loss and accuracy are computed from the labels
-1, 0 and 1, or the classes of the training data.)help";

}  // namespace

void AddPredict(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* sub =
      app.add_subcommand("predict", "Predict with a linear model or factorization machine");
  sub->add_option("MODEL", arguments->model, "Model directory")->required()->type_name("");
  sub->add_option("--data", arguments->data, "Files with examples")->required()->type_name("FILE");
  sub->add_option("-o,--output", arguments->output,
                  "Output file of the probabilities; -: standard output, without other text")
      ->check(CLI::Validator(
          [](const std::string& name) {
            return name.empty() ? "got an empty name, expected a file or -" : "";
          },
          ""))
      ->type_name("FILE");
  sub->add_option("--format", arguments->format,
                  "Format of the files: libsvm, libffm, csv [the training data's]")
      ->check(CLI::IsMember({"libsvm", "libffm", "csv"}).description(""))
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
