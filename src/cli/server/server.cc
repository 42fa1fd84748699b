// `shoal server`: the jobs of a team, over HTTP, until a signal ends it.

#include "api/process/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "api/process/backup.h"
#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/terminal/ready_notice.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stop_signals.h"
#include "cli/version.h"
#include "controller/files/state_home.h"
#include "engine/process/task_process.h"
#include "net/address.h"
#include "net/event_loop.h"

namespace shoal::cli {
namespace {

struct ServerArguments {
  std::string state;
  std::string store;
  std::string listen = "127.0.0.1:7117";
  std::string certificate;
  std::string key;
  bool self_signed = false;
  std::vector<std::string> names;
  std::string engines;
  std::string engine = "local";
  std::string url;
  std::vector<std::string> origins;
  std::string queues;
  std::string secrets_key;
  std::string secrets_key_command;
  std::vector<std::string> webhook_allow;
  std::string forward;
  std::string oidc;
  std::string gate_address = "127.0.0.1";
  bool runs_operator = false;
  std::string operator_engine = "kubernetes";
  std::vector<std::string> operator_teams;
};

// Time that requests under way have to end.
constexpr Duration kGrace = std::chrono::seconds(10);

// The absolute path of --state, or of its default.
Result<std::filesystem::path> StateOf(const std::string& option) {
  std::error_code error;
  if (!option.empty()) return std::filesystem::absolute(option, error);
  TRY_ASSIGN(const std::filesystem::path home, controller::FindStateHome());
  return std::filesystem::absolute(home / "server", error);
}

Result<api::ServerOptions> OptionsOf(const Context& context, const ServerArguments& arguments) {
  api::ServerOptions options;
  TRY_ASSIGN(const net::HostPort listen, net::ParseHostPort(arguments.listen));
  options.address = listen.host == "localhost" ? "127.0.0.1" : listen.host;
  options.port = listen.port;
  TRY_ASSIGN(options.state, StateOf(arguments.state));
  options.store = arguments.store;
  if (arguments.certificate.empty() != arguments.key.empty())
    return InvalidArgument("--tls-cert and --tls-key belong together; got only one of them");
  if (arguments.self_signed && !arguments.key.empty())
    return InvalidArgument("got --tls-self-signed and --tls-cert, expected one of them");
  options.tls.certificate_file = arguments.certificate;
  options.tls.key_file = arguments.key;
  if (arguments.self_signed) options.tls.self_signed_directory = (options.state / "tls").string();
  options.tls.names = arguments.names;
  options.engines_file = arguments.engines;
  options.default_engine = arguments.engine;
  options.public_url = arguments.url;
  options.allowed_origins = arguments.origins;
  std::error_code error;
  if (!arguments.queues.empty())
    options.queues_file = std::filesystem::absolute(arguments.queues, error);
  if (!arguments.secrets_key.empty() && !arguments.secrets_key_command.empty())
    return InvalidArgument("got --secrets-key and --secrets-key-command, expected one of them");
  if (!arguments.secrets_key.empty())
    options.secrets_key = std::filesystem::absolute(arguments.secrets_key, error);
  options.secrets_key_command = arguments.secrets_key_command;
  options.webhook_allow = arguments.webhook_allow;
  if (!arguments.forward.empty())
    options.forward_file = std::filesystem::absolute(arguments.forward, error);
  if (!arguments.oidc.empty()) options.oidc_file = std::filesystem::absolute(arguments.oidc, error);
  options.gate_address = arguments.gate_address;
  if (!arguments.runs_operator && !arguments.operator_teams.empty())
    return InvalidArgument("--operator-team has no effect without --operator");
  if (arguments.runs_operator) options.operator_engine = arguments.operator_engine;
  options.operator_teams = arguments.operator_teams;
  options.program = context.program;
  options.version = VersionLine();
  return options;
}

void AddRole(const api::ServerRole& role, json::object* to) {
  if (role.epoch == 0 && role.leads) return;  // it has its store for itself
  (*to)["role"] = role.leads ? "leader" : "standby";
  if (role.leads) (*to)["epoch"] = role.epoch;
  if (!role.leader.empty()) (*to)["leader"] = role.leader;
  if (!role.why.empty()) (*to)["why"] = role.why;
}

std::string RoleText(const api::ServerRole& role) {
  if (role.leads)
    return "this server leads" +
           (role.attached == 0
                ? std::string()
                : "; " + std::to_string(role.attached) + " jobs of an earlier server go on") +
           "\n";
  return "standby: " + (role.leader.empty() ? "no server leads" : role.leader + " leads") +
         (role.why.empty() ? "" : " (" + role.why + ")") + "\n";
}

// As whom tasks run, which is said at every start.
constexpr const char* kTasksAsRoot =
    "tasks of the engines local and slurm run as root, but those of teams whose policy names a "
    "user "
    "(docs/policies.md)\n";
constexpr const char* kTasksAsServer =
    "tasks of the engines local and slurm run as this server's user, so they can read what it "
    "keeps; "
    "teams with a user of their own need a server that runs as root (docs/policies.md)\n";

bool RunsAsRoot() { return ::geteuid() == 0; }

json::object ReadyJson(const api::Server& server, const api::ServerOptions& options) {
  json::object ready{{"event", "ready"},
                     {"url", server.url()},
                     {"state", options.state.string()},
                     {"attached", server.role().attached},
                     {"runs_as_root", RunsAsRoot()}};
  AddRole(server.role(), &ready);
  if (!server.fingerprint().empty()) ready["fingerprint"] = server.fingerprint();
  if (server.first_token()) ready["token_file"] = (options.state / api::kFirstTokenFile).string();
  return ready;
}

std::string ReadyText(const api::Server& server, const api::ServerOptions& options) {
  std::string text = "ready on " + server.url() + ", state in " + options.state.string() + "\n";
  if (!server.fingerprint().empty())
    text += "the certificate's fingerprint: " + server.fingerprint() + "\n";
  const api::ServerRole role = server.role();
  if (role.epoch != 0 || !role.leads) {
    text += RoleText(role);
  } else if (role.attached != 0) {
    text += std::to_string(role.attached) + " jobs of an earlier server go on\n";
  }
  text += RunsAsRoot() ? kTasksAsRoot : kTasksAsServer;
  if (!server.first_token()) return text;
  const std::string file = (options.state / api::kFirstTokenFile).string();
  return text + "the administrator's token, shown this once: " + *server.first_token() +
         "\nit is also in " + file + ", which only this user can read\nsign in: shoal login " +
         server.url() +
         (server.fingerprint().empty() ? "" : " --fingerprint " + server.fingerprint()) +
         " --token-file " + file + "\n";
}

void PrintRole(bool json, const api::ServerRole& role) {
  json::object object{{"event", role.leads ? "leading" : "standby"}, {"attached", role.attached}};
  AddRole(role, &object);
  const Status printed = PrintOut(json ? JsonLine(object) : RoleText(role));
  if (!printed.ok()) PrintNote("the role cannot be printed: " + printed.message());
}

// Errors are those of the file; the policy in force then stays.
void ReloadQueues(bool json, const std::string& file, api::Server* server) {
  const Status reloaded = server->ReloadQueues();
  if (!reloaded.ok()) PrintNote("the queues stay as they were: " + reloaded.message());
  json::object event{{"event", "queues"}, {"file", file}, {"reloaded", reloaded.ok()}};
  if (!reloaded.ok()) event["why"] = reloaded.message();
  if (!json && !reloaded.ok()) return;
  const Status printed =
      PrintOut(json ? JsonLine(event) : "the queues of " + file + " are in force\n");
  if (!printed.ok())
    PrintNote("that the queues are in force cannot be printed: " + printed.message());
}

int Serve(const Context& context, const ServerArguments& arguments) {
  // Jobs of a team must not read with the credentials of the server's own environment.
  for (const std::string& name : engine::StoreVariables()) ::unsetenv(name.c_str());
  Result<api::ServerOptions> options = OptionsOf(context, arguments);
  if (!options.ok()) return PrintError(options.status());
  net::Loop loop;
  Status failed;
  options->on_change = [&loop, json = context.json](const api::ServerRole& role) {
    loop.Post([json, role] { PrintRole(json, role); });
  };
  options->on_failed = [&loop, &failed](const Status& why) {
    loop.Post([&loop, &failed, why] {
      failed = why;
      loop.Stop();
    });
  };
  int signals = 0;
  for (const int signal : WithoutIgnored({SIGINT, SIGTERM}))
    loop.WatchSignal(signal, [&] {
      ++signals;
      loop.Stop();
    });
  const Result<std::unique_ptr<api::Server>> server = api::Server::Start(*options);
  if (!server.ok()) return PrintError(server.status());
  if (!arguments.queues.empty())
    loop.WatchSignal(SIGHUP, [&] { ReloadQueues(context.json, arguments.queues, server->get()); });
  const Status printed = PrintOut(context.json ? JsonLine(ReadyJson(**server, *options))
                                               : ReadyText(**server, *options));
  if (!printed.ok()) PrintNote("the first lines cannot be printed: " + printed.message());
  NotifyServiceManager("READY=1");
  loop.Run();
  NotifyServiceManager("STOPPING=1");
  if (!failed.ok()) return PrintError(failed);
  PrintNote("ending; running jobs go on, and the next server takes them over");
  (*server)->Shutdown(kGrace);
  return 0;
}

struct CopyArguments {
  std::string state;
  std::string directory;
};

int CopyState(const CopyArguments& arguments, bool restore) {
  const Result<std::filesystem::path> state = StateOf(arguments.state);
  if (!state.ok()) return PrintError(state.status());
  const Result<api::BackupResult> copied = restore ? api::Restore(arguments.directory, *state)
                                                   : api::Backup(*state, arguments.directory);
  if (!copied.ok()) return PrintError(copied.status());
  if (copied->left_out > 0)
    PrintNote(
        fmt::format("{} files and directories of jobs are not copied: their users cannot read "
                    "them or exchanged them meanwhile, or their paths are too long",
                    copied->left_out));
  return PrintConfirmation(fmt::format("{} of {} {}: the records and {} files, {:.1f} MB\n",
                                       restore ? "restored" : "backup", state->string(),
                                       (restore ? "from " : "in ") + arguments.directory,
                                       copied->files, static_cast<double>(copied->bytes) / 1e6));
}

void AddCopy(CLI::App* server, bool restore, Run* chosen) {
  auto arguments = std::make_shared<CopyArguments>();
  CLI::App* sub = server->add_subcommand(
      restore ? "restore" : "backup",
      restore ? "Make a state directory of a backup" : "Copy the state while the server runs");
  sub->add_option("DIR", arguments->directory,
                  restore ? "The backup" : "New directory for the copy")
      ->required();
  sub->add_option("--state", arguments->state, "State directory of the server")->type_name("DIR");
  sub->footer(restore ? "Examples:\n  shoal server restore /backup/monday --state /srv/shoal"
                      : "Examples:\n  shoal server backup /backup/monday --state /var/lib/shoal");
  sub->callback([arguments, restore, chosen] {
    *chosen = [arguments, restore](const Context& /*context*/) {
      return CopyState(*arguments, restore);
    };
  });
}

constexpr const char* kServerFooter = R"help(Examples:
  shoal server --state /var/lib/shoal
  shoal server --state /var/lib/shoal --listen 0.0.0.0:7117 --tls-self-signed --name ml.example
  shoal server --listen 0.0.0.0:7117 --tls-cert server.crt --tls-key server.key
  shoal server --store postgres://shoal@db/shoal --state /srv/shoal
  shoal server --operator --operator-team research=red

The first start makes the user admin and its token, prints the token once and stores it in
DIR/administrator.token. Without TLS the server listens on the loopback only, since tokens would
cross the network in the clear. SIGTERM and Ctrl-C end the server, not its jobs: the next server of
the directory attaches them. docs/server.md has users, teams, backups and upgrades, docs/rest.md the
interface for programs.)help";

void AddKeyOptions(CLI::App* sub, ServerArguments* arguments) {
  sub->add_option("--secrets-key", arguments->secrets_key,
                  "File of the key that seals secrets [secrets.key in the state directory]")
      ->type_name("FILE");
  sub->add_option("--secrets-key-command", arguments->secrets_key_command,
                  "Shell command that prints that key, such as a client of a key service")
      ->type_name("COMMAND");
}

void AddOperatorOptions(CLI::App* sub, ServerArguments* arguments) {
  sub->add_flag("--operator", arguments->runs_operator,
                "Run the ShoalJobs of a Kubernetes cluster (docs/operator.md)");
  sub->add_option("--operator-engine", arguments->operator_engine,
                  "Engine instance of that cluster")
      ->capture_default_str()
      ->type_name("NAME");
  sub->add_option("--operator-team", arguments->operator_teams,
                  "Team of the ShoalJobs of a namespace, * for all others (repeatable) [*=default]")
      ->allow_extra_args(false)
      ->type_name("NAMESPACE=TEAM");
}

}  // namespace

void AddServer(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ServerArguments>();
  CLI::App* sub = app.add_subcommand("server", "Run jobs for a team, over HTTP");
  sub->add_option("--state", arguments->state,
                  "State directory: records, logs, outputs, uploads [$SHOAL_HOME/server]")
      ->type_name("DIR");
  sub->add_option("--store", arguments->store,
                  "Where records are kept: sqlite:FILE or postgres://… [in the state directory]")
      ->type_name("URL");
  sub->add_option("--listen", arguments->listen, "Address and port; port 0: any")
      ->capture_default_str()
      ->type_name("HOST:PORT");
  sub->add_option("--tls-cert", arguments->certificate, "Certificate with its chain, PEM")
      ->type_name("FILE");
  sub->add_option("--tls-key", arguments->key, "Its key, PEM")->type_name("FILE");
  sub->add_flag("--tls-self-signed", arguments->self_signed,
                "Make a certificate at the first start; `shoal login` pins its fingerprint");
  sub->add_option("--name", arguments->names,
                  "Name or address in the self-signed certificate (repeatable)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  sub->add_option("--engines", arguments->engines,
                  "File of engine instances (docs/engines/instances.md)")
      ->type_name("FILE");
  sub->add_option("--engine", arguments->engine, "Engine of jobs that name none")
      ->capture_default_str()
      ->type_name("NAME");
  sub->add_option("--url", arguments->url,
                  "Where clients reach this server; other servers of its store tell them "
                  "[the address it listens on]")
      ->type_name("URL");
  sub->add_option("--allow-origin", arguments->origins,
                  "Origin of a page that may use the server (repeatable)")
      ->allow_extra_args(false)
      ->type_name("URL");
  sub->add_option("--queues", arguments->queues,
                  "File of queues, quotas and shares (docs/queue.md) [first in, first out]")
      ->type_name("FILE");
  AddKeyOptions(sub, arguments.get());
  sub->add_option("--webhook-allow", arguments->webhook_allow,
                  "Network of this machine or site that webhooks may lead to (repeatable) [none]")
      ->allow_extra_args(false)
      ->type_name("CIDR");
  sub->add_option("--forward-logs", arguments->forward,
                  "File of receivers of all logs: OpenSearch, Loki, syslog (docs/logs.md) [none]")
      ->type_name("FILE");
  sub->add_option("--oidc", arguments->oidc,
                  "File of the OpenID Connect provider that signs people in (docs/oidc.md)")
      ->type_name("FILE");
  sub->add_option("--gate-address", arguments->gate_address,
                  "Numeric address where tasks reach the gates of their tables (docs/catalog.md)")
      ->type_name("ADDRESS");
  AddOperatorOptions(sub, arguments.get());
  for (const bool restore : {false, true}) AddCopy(sub, restore, chosen);
  sub->footer(kServerFooter);
  sub->callback([arguments, sub, chosen] {
    if (!sub->get_subcommands().empty()) return;  // which has its own function
    *chosen = [arguments](const Context& context) { return Serve(context, *arguments); };
  });
}

}  // namespace shoal::cli
