// `shoal resume JOB`: a suspended job goes on, in the foreground.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/job_runner.h"

namespace shoal::cli {
namespace {

struct Arguments {
  std::string job;
  bool quiet = false;
};

constexpr const char* kFooter = R"help(Examples:
  shoal resume word2vec-7f3a9c
  shoal resume word --json | jq .

The job waits for its turn like a new one, then all tasks that had not ended start again, with the
next attempt, where they were started first. Trainers of Shoal go on from the last checkpoint, other
programs from what they saved. It is then like a job of shoal run: the same display, signals and exit
codes.)help";

}  // namespace

void AddResume(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* sub = app.add_subcommand("resume", "Go on with a suspended job, and wait for it");
  sub->add_option("JOB", arguments->job, "The job, or the beginning of its name")->required();
  sub->add_flag("-q,--quiet", arguments->quiet, "Print nothing but errors");
  sub->footer(kFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      return ResumeJob(context, arguments->job, {.quiet = arguments->quiet, .engine = ""});
    };
  });
}

}  // namespace shoal::cli
