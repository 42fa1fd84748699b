// `shoal scale JOB ROLE=N`: changes the number of tasks of an elastic role.

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

struct ScaleArguments {
  std::string job;
  std::string request;
};

struct ScaleRequest {
  std::string role;
  int replicas = 0;
};

Result<ScaleRequest> ParseScaleRequest(const std::string& text) {
  const size_t equals = text.find('=');
  ScaleRequest request;
  if (equals != std::string::npos && equals > 0) {
    request.role = text.substr(0, equals);
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + equals + 1, end, request.replicas);
    if (error == std::errc() && rest == end && request.replicas >= 0) return request;
  }
  return InvalidArgument("got '" + text + "', expected ROLE=NUMBER, such as worker=8");
}

Status ScaleJob(const Context& context, const ScaleArguments& arguments, std::string* id) {
  TRY_ASSIGN(const ScaleRequest request, ParseScaleRequest(arguments.request));
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const controller::JobView job, jobs->Find(arguments.job));
  *id = job.record.id;
  return jobs->Scale(job.record.id, request.role, request.replicas);
}

int ScaleRole(const Context& context, const ScaleArguments& arguments) {
  std::string id;
  const Status done = ScaleJob(context, arguments, &id);
  if (!done.ok()) return PrintError(done);
  return PrintConfirmation((context.json
                                ? ToText(json::object{{"job", id}, {"scaled", arguments.request}})
                                : id + " " + arguments.request) +
                           "\n");
}

constexpr const char* kScaleFooter = R"help(Examples:
  shoal scale mnist-7f3a9c worker=8       start tasks until there are 8 workers
  shoal scale word server=1               end the tasks with the highest indices (SIGTERM)

The role must be elastic: its job file sets 'min' or 'max'. A queued job is admitted and started
with the new number. Returns when the job's coordinator has accepted the number; `shoal show` lists
the tasks that started and ended.)help";

}  // namespace

void AddScale(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ScaleArguments>();
  CLI::App* sub = app.add_subcommand("scale", "Change the number of tasks of a role");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix")->required();
  sub->add_option("ROLE=N", arguments->request, "Role and its new number of tasks")->required();
  sub->footer(kScaleFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return ScaleRole(context, *arguments); };
  });
}

}  // namespace shoal::cli
