// `shoal report MODEL -o FILE`: a model as a page.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "cli/commands/commands.h"
#include "cli/models/model_page.h"
#include "cli/models/show_model.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

struct ReportArguments {
  ShowModelArguments model;
  std::string output;
};

int WriteReport(const ReportArguments& arguments) {
  const Result<DescribedModel> model = DescribeModelAt(arguments.model);
  if (!model.ok()) return PrintError(model.status());
  const Result<std::string> page =
      RenderModelPage({arguments.model.model, model->metadata, &model->description, std::nullopt});
  if (!page.ok()) return PrintError(page.status());
  if (arguments.output == "-") return PrintResult(*page);
  const Status written = WriteOutputFile(arguments.output, *page);
  return written.ok() ? 0 : PrintError(written);
}

constexpr const char* kReportFooter = R"help(Examples:
  shoal report ages -o ages.html
  shoal report ages --top 50 -o - > ages.html

The page has the loss by epoch, the calibration, confusion or residuals of the test data, else of
the validation data, the strongest features, the parameters and the columns. It needs no network and
has no scripts. `shoal predict --report` writes the same for other data with labels.)help";

}  // namespace

void AddReport(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* sub =
      app.add_subcommand("report", "Write a page about a linear model or factorization machine");
  sub->add_option("MODEL", arguments->model.model, "Model directory")->required()->type_name("");
  sub->add_option("-o,--output", arguments->output, "The HTML file; - for standard output")
      ->type_name("FILE")
      ->required();
  sub->add_option("--top", arguments->model.top, "Features with the largest weights [20]")
      ->check(CLI::Range(1, 10'000).description(""))
      ->type_name("N");
  sub->add_option("--data", arguments->model.data,
                  "csv files with the names of a model's classes [its training data]")
      ->type_name("FILE");
  sub->footer(kReportFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& /*context*/) { return WriteReport(*arguments); };
  });
}

}  // namespace shoal::cli
