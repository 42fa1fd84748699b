// `shoal secret`: the passwords and keys that job files refer to by name.

#include <CLI/CLI.hpp>
#include <memory>

#include "base/file.h"
#include "base/seal.h"
#include "cli/commands/commands.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/hidden_input.h"
#include "cli/terminal/report.h"
#include "controller/secrets/secrets.h"

namespace shoal::cli {
namespace {

struct SecretArguments {
  std::string name;
  std::string team;
  std::string file;
};

using Action = int (*)(const Context&, const SecretArguments&, controller::Secrets&);

int WithSecrets(const Context& context, const SecretArguments& arguments, Action action) {
  const auto jobs = OpenJobs(context);
  if (!jobs.ok()) return PrintError(jobs.status());
  const auto secrets = (*jobs)->SecretsOf(arguments.team);
  if (!secrets.ok()) return PrintError(secrets.status());
  return action(context, arguments, **secrets);
}

Result<std::string> ReadValue(const SecretArguments& arguments) {
  if (arguments.file.empty() || arguments.file == "-")
    return ReadHidden("value of " + arguments.name + ": ", controller::kMaxSecretBytes + 1);
  return ReadFile(arguments.file, controller::kMaxSecretBytes);
}

int Set(const Context& /*context*/, const SecretArguments& arguments,
        controller::Secrets& secrets) {
  auto value = ReadValue(arguments);
  if (!value.ok()) return PrintError(value.status());
  const Status done = secrets.Set(arguments.name, *value);
  EraseSecret(&*value);
  return done.ok() ? 0 : PrintError(done);
}

int Remove(const Context& /*context*/, const SecretArguments& arguments,
           controller::Secrets& secrets) {
  const Status done = secrets.Remove(arguments.name);
  return done.ok() ? 0 : PrintError(done);
}

int List(const Context& context, const SecretArguments& /*arguments*/,
         controller::Secrets& secrets) {
  const auto found = secrets.List();
  if (!found.ok()) return PrintError(found.status());
  if (context.json) {
    std::string out;
    for (const controller::SecretInfo& secret : *found)
      out += JsonLine({{"name", secret.name},
                       {"changed", FormatWall(secret.changed)},
                       {"by", secret.by},
                       {"bytes", secret.bytes}});
    return PrintResult(out);
  }
  if (found->empty()) {
    PrintNote("there are no secrets yet; `shoal secret set NAME` makes one");
    return 0;
  }
  const WallTime now = RealClock::Get()->Wall();
  std::vector<std::vector<std::string>> rows = {{"SECRET", "CHANGED", "BYTES", "BY"}};
  for (const controller::SecretInfo& secret : *found)
    rows.push_back(
        {secret.name, Ago(secret.changed, now), std::to_string(secret.bytes), secret.by});
  return PrintResult(Table(rows));
}

CLI::App* AddAction(CLI::App* parent, const char* name, const char* doc, bool named, Action action,
                    Run* chosen) {
  auto arguments = std::make_shared<SecretArguments>();
  CLI::App* sub = parent->add_subcommand(name, doc);
  if (named)
    sub->add_option("NAME", arguments->name, "Letters, digits, '-', '_' and '.'")->required();
  if (action == &Set)
    sub->add_option("--file", arguments->file, "Read the value from this file [standard input]")
        ->type_name("FILE");
  sub->add_option("--team", arguments->team, "Team of the server [the user's only one]")
      ->type_name("TEAM");
  sub->fallthrough();  // --json and --server are the parent's
  sub->callback([arguments, action, chosen] {
    *chosen = [arguments, action](const Context& context) {
      return WithSecrets(context, *arguments, action);
    };
  });
  return sub;
}

constexpr const char* kSecretFooter = R"help(Examples:
  shoal secret set db-password                     asks for the value
  shoal secret set db-password < password.txt      without the file's last line end
  shoal secret set gcs-key --file key.json         with all bytes of the file
  shoal secret list
  shoal secret remove db-password

A job file uses it as `env: {DB_PASSWORD: {secret: db-password}}`, or gets the path of a private
file by `{secret_file: gcs-key}`. Values are stored sealed and are never shown (docs/secrets.md).)help";

}  // namespace

void AddSecret(CLI::App& app, Run* chosen) {
  CLI::App* sub =
      app.add_subcommand("secret", "Passwords and keys that job files refer to by name");
  AddAction(sub, "set", "Make or replace a secret", true, &Set, chosen)
      ->footer("Examples:\n  shoal secret set db-password < password.txt");
  AddAction(sub, "list", "List the names of the secrets", false, &List, chosen)
      ->footer("Examples:\n  shoal secret list");
  AddAction(sub, "remove", "Remove a secret", true, &Remove, chosen)
      ->footer("Examples:\n  shoal secret remove db-password");
  sub->require_subcommand(1);
  sub->footer(kSecretFooter);
}

}  // namespace shoal::cli
