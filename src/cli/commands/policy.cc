// `shoal policy`: what job files of a server's teams may ask for, and as whom their tasks run.

#include <CLI/CLI.hpp>
#include <memory>

#include "api/client/api_client.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "net/http.h"

namespace shoal::cli {
namespace {

constexpr size_t kMaxPolicy = size_t{1} << 20;

struct PolicyArguments {
  std::string file;
  std::string team;
};

using Action = Result<std::string> (*)(const PolicyArguments&, const api::ApiClient&);

std::string TargetOf(const PolicyArguments& arguments) {
  if (arguments.team.empty()) return "/api/v1/policy";
  return "/api/v1/teams/" + net::PercentEncode(arguments.team) + "/policy";
}

std::string NameOf(const PolicyArguments& arguments) {
  return arguments.team.empty() ? "the teams without a policy of their own"
                                : "the team " + arguments.team;
}

Result<std::string> Show(const PolicyArguments& arguments, const api::ApiClient& client) {
  TRY_ASSIGN(const json::object policy, client.Get(TargetOf(arguments)));
  return ToPrettyText(policy) + "\n";
}

Result<std::string> Set(const PolicyArguments& arguments, const api::ApiClient& client) {
  TRY_ASSIGN(const std::string text,
             ReadFile(arguments.file == "-" ? "/dev/stdin" : arguments.file, kMaxPolicy));
  const auto policy = ParseJsonObject(text);
  if (!policy.ok()) return policy.status().With(arguments.file);
  TRY(client.CallJson("PUT", TargetOf(arguments), *policy).status());
  return "the policy of " + NameOf(arguments) +
         " is set; jobs that are submitted from now on follow "
         "it\n";
}

Result<std::string> Remove(const PolicyArguments& arguments, const api::ApiClient& client) {
  TRY(client.CallJson("DELETE", TargetOf(arguments)).status());
  return "the policy of " + NameOf(arguments) + " is removed\n";
}

int Call(const Context& context, const PolicyArguments& arguments, Action action) {
  const auto client = OpenServer(context, "policies");
  if (!client.ok()) return PrintError(client.status());
  const Result<std::string> done = action(arguments, **client);
  if (!done.ok()) return PrintError(done.status());
  return action == &Show ? PrintResult(*done) : PrintConfirmation(*done);
}

CLI::App* AddAction(CLI::App* parent, const char* name, const char* doc, Action action,
                    Run* chosen) {
  auto arguments = std::make_shared<PolicyArguments>();
  CLI::App* sub = parent->add_subcommand(name, doc);
  if (action == &Set)
    sub->add_option("FILE", arguments->file, "The policy in JSON; -: standard input")->required();
  sub->add_option("--team", arguments->team, "Team of the server [the teams without a policy]")
      ->type_name("TEAM");
  sub->fallthrough();  // --server is the parent's
  sub->callback([arguments, action, chosen] {
    *chosen = [arguments, action](const Context& context) {
      return Call(context, *arguments, action);
    };
  });
  return sub;
}

constexpr const char* kPolicyFooter = R"help(Examples:
  shoal policy show --team research
  shoal policy set policy.json --team research
  shoal policy remove --team research

A policy limits engines, images, paths and fields, and names the Linux user as whom the team's tasks
run: {"user": "research", "isolated": true}. Only administrators set policies (docs/policies.md).)help";

}  // namespace

void AddPolicy(CLI::App& app, Run* chosen) {
  CLI::App* sub = app.add_subcommand("policy", "What job files of a team may ask for");
  AddAction(sub, "show", "Print the policy that applies to a team", &Show, chosen)
      ->footer("Examples:\n  shoal policy show --team research");
  AddAction(sub, "set", "Make or replace a policy", &Set, chosen)
      ->footer("Examples:\n  shoal policy set policy.json --team research");
  AddAction(sub, "remove", "Remove a policy", &Remove, chosen)
      ->footer("Examples:\n  shoal policy remove --team research");
  sub->require_subcommand(1);
  sub->footer(kPolicyFooter);
}

}  // namespace shoal::cli
