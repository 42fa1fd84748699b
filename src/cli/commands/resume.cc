// `shoal resume JOB`: resumes a suspended job in the foreground.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/job_runner.h"

namespace shoal::cli {
namespace {

struct ResumeArguments {
  std::string job;
  bool quiet = false;
};

constexpr const char* kResumeFooter = R"help(Examples:
  shoal resume word2vec-7f3a9c
  shoal resume word --json | jq .

The job is queued like a new one. Then every task that had not ended starts its next attempt in its
original working directory. Shoal's trainers continue from the last checkpoint, other programs from
their own saved state. Display, signals and exit codes are those of shoal run.)help";

}  // namespace

void AddResume(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ResumeArguments>();
  CLI::App* sub = app.add_subcommand("resume", "Resume a suspended job and wait until it ends");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix")->required();
  sub->add_flag("-q,--quiet", arguments->quiet, "Print errors only");
  sub->footer(kResumeFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      return ResumeJob(context, arguments->job, {.quiet = arguments->quiet, .engine = ""});
    };
  });
}

}  // namespace shoal::cli
