// `shoal report JOB|MODEL -o FILE`: a job or a model as a page.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "api/client/api_client.h"
#include "base/output_file.h"
#include "cli/commands/commands.h"
#include "cli/jobs/job_panels.h"
#include "cli/jobs/open_jobs.h"
#include "cli/models/job_page.h"
#include "cli/models/model_page.h"
#include "cli/models/show_model.h"
#include "cli/terminal/report.h"
#include "model/save_model.h"

namespace shoal::cli {
namespace {

struct ReportArguments {
  ShowModelArguments model;
  std::string output;
};

Result<std::string> ModelReport(const ReportArguments& arguments) {
  TRY_ASSIGN(const DescribedModel model, DescribeModelAt(arguments.model));
  return RenderModelPage({arguments.model.model, model.metadata, &model.description, std::nullopt});
}

// What the catalogue's server knows of the tables that the job read; nothing without a server, and
// for those who may not see it.
std::vector<json::object> LineageOf(const Context& context, const std::string& job) {
  const auto client = OpenServer(context, "lineages");
  if (!client.ok()) return {};
  const auto reply = (*client)->Get("/api/v1/lineage" + api::QueryText({{"job", job}}));
  if (!reply.ok()) return {};
  const json::value* const items = reply->if_contains("items");
  std::vector<json::object> records;
  if (items == nullptr || !items->is_array()) return records;
  for (const json::value& one : items->get_array()) {
    if (one.is_object()) records.push_back(one.get_object());
  }
  return records;
}

Result<std::string> JobReport(const Context& context, const std::string& prefix) {
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const controller::JobView found, jobs->Find(prefix));
  JobPage page;
  page.now = RealClock::Get()->Wall();
  TRY_ASSIGN(page.details, jobs->Describe(found.record.id));
  if (auto curves = PanelsOfJobs(jobs.get(), {found.record.id}, {}); curves.ok())
    page.curves = std::move(*curves);  // of a job that has reported numbers
  if (found.directory.empty()) page.lineage = LineageOf(context, found.record.id);
  if (const json::object* const outputs = FindObject(found.record.job, "outputs")) {
    const std::string model = GetStringOr(*outputs, "model", "");
    if (auto metadata = model::ReadModelMetadata(model); !model.empty() && metadata.ok())
      page.model = std::move(*metadata);
  }
  return RenderJobPage(page);
}

int WriteReport(const Context& context, const ReportArguments& arguments) {
  const bool model = IsModelDirectory(arguments.model.model);
  const Result<std::string> page =
      model ? ModelReport(arguments) : JobReport(context, arguments.model.model);
  if (!page.ok()) return PrintError(page.status());
  if (arguments.output == "-") return PrintResult(*page);
  const Status written = WriteOutputFile(arguments.output, *page);
  return written.ok() ? 0 : PrintError(written);
}

constexpr const char* kReportFooter = R"help(Examples:
  shoal report ages -o ages.html
  shoal report ages --top 50 -o - > ages.html
  shoal report word2vec-7f3a9c -o job.html    of a job

The page of a model has the loss by epoch, the calibration, confusion or residuals of the test data, else of
the validation data, the strongest features, the parameters and the columns; that of a job its
parameters, data, curves, results, tasks and job file, without the values of environment variables.
It needs no network and has no scripts. `shoal predict --report` writes the same for other data with labels.)help";

}  // namespace

void AddReport(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* sub = app.add_subcommand(
      "report", "Write a page about a job, a linear model or factorization machine");
  sub->add_option("JOB|MODEL", arguments->model.model,
                  "Name of a job or an unambiguous prefix, or a model directory")
      ->required()
      ->type_name("");
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
    *chosen = [arguments](const Context& context) { return WriteReport(context, *arguments); };
  });
}

}  // namespace shoal::cli
