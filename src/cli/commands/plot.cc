// `shoal plot JOB… -o FILE`: the curves of jobs as a picture.

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "base/output_file.h"
#include "cli/commands/commands.h"
#include "cli/jobs/curve_svg.h"
#include "cli/jobs/job_panels.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

struct PlotArguments {
  std::vector<std::string> jobs;
  std::string output;
  std::vector<std::string> metrics;
};

Status Plot(const Context& context, const PlotArguments& arguments) {
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const std::vector<PlotPanel> panels,
             PanelsOfJobs(jobs.get(), arguments.jobs, arguments.metrics));
  const std::string svg = PlotSvg(panels);
  return arguments.output == "-" ? PrintOut(svg) : WriteOutputFile(arguments.output, svg);
}

constexpr const char* kPlotFooter = R"help(Examples:
  shoal plot word2vec-7f3a9c -o curves.svg
  shoal plot mnist-1b6d2e mnist-7f3a9c --metric loss -o losses.svg    two jobs in one picture
  shoal plot mnist-7f3a9c -o - > curves.svg)help";

}  // namespace

void AddPlot(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<PlotArguments>();
  CLI::App* sub = app.add_subcommand("plot", "Draw the curves of jobs to an SVG file");
  sub->add_option("JOB", arguments->jobs, "Names of jobs, or unambiguous prefixes")->required();
  sub->add_option("-o,--output", arguments->output, "The file; - for standard output")
      ->type_name("FILE")
      ->required();
  sub->add_option("--metric", arguments->metrics,
                  "Draw this number [losses and speeds] (can be repeated)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  sub->footer(kPlotFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      const Status done = Plot(context, *arguments);
      return done.ok() ? 0 : PrintError(done);
    };
  });
}

}  // namespace shoal::cli
