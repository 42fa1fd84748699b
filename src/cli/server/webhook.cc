// `shoal webhook`: URLs that a server tells of changes of jobs.

#include <CLI/CLI.hpp>
#include <memory>

#include "api/client/api_client.h"
#include "api/client/login_file.h"
#include "api/client/remote_secrets.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/hidden_input.h"
#include "cli/terminal/report.h"
#include "net/http.h"

namespace shoal::cli {
namespace {

constexpr size_t kMaxText = 4096;

struct WebhookArguments {
  std::string name;
  std::string team;
  bool all_teams = false;
  std::string url;
  std::string url_file;
  std::string secret_file;
  std::string format;
  std::vector<std::string> events;
};

// Where the requests go, "/api/v1/teams/red/webhooks".
struct Place {
  std::unique_ptr<api::ApiClient> client;
  std::string target;
};

using Action = Result<std::string> (*)(const Context&, const WebhookArguments&, const Place&);

Result<Place> FindPlace(const Context& context, const WebhookArguments& arguments) {
  if (arguments.all_teams && !arguments.team.empty())
    return InvalidArgument("got --all-teams and --team, expected one of them");
  Place place;
  TRY_ASSIGN(place.client, OpenServer(context, "webhooks"));
  place.target = "/api/v1/webhooks";
  if (arguments.all_teams) return place;
  std::string team = arguments.team;
  if (team.empty()) {
    TRY_ASSIGN(team, api::UsualTeam(*place.client));
  }
  place.target = "/api/v1/teams/" + net::PercentEncode(team) + "/webhooks";
  return place;
}

// The first line of a file; "-": of standard input.
Result<std::string> ReadLine(const std::string& file, const std::string& prompt) {
  std::string text;
  if (file == "-") {
    TRY_ASSIGN(text, ReadHidden(prompt, kMaxText));
  } else {
    TRY_ASSIGN(text, ReadFile(file, kMaxText));
  }
  return text.substr(0, text.find_first_of("\r\n"));
}

Result<std::string> Set(const Context& context, const WebhookArguments& arguments,
                        const Place& place) {
  json::object body;
  if (!arguments.url.empty() && !arguments.url_file.empty())
    return InvalidArgument("got --url and --url-file, expected one of them");
  if (!arguments.url.empty()) body["url"] = arguments.url;
  if (!arguments.url_file.empty()) {
    TRY_ASSIGN(const std::string url, ReadLine(arguments.url_file, "URL: "));
    body["url"] = url;
  }
  if (!arguments.secret_file.empty()) {
    TRY_ASSIGN(const std::string secret, ReadLine(arguments.secret_file, "secret: "));
    body["secret"] = secret;
  }
  if (!arguments.format.empty()) body["format"] = arguments.format;
  json::array events;
  for (const std::string& event : arguments.events) events.emplace_back(event);
  if (!events.empty()) body["events"] = std::move(events);
  const std::string target = place.target + "/" + net::PercentEncode(arguments.name);
  TRY_ASSIGN(const json::object reply, place.client->CallJson("PUT", target, body));
  if (context.json) return JsonLine(reply);
  const std::string secret = GetStringOr(reply, "secret", "");
  std::string text = arguments.name + " tells " + GetStringOr(reply, "url", "") + "\n";
  if (!secret.empty()) text += "the key of its signatures, shown this once: " + secret + "\n";
  return text;
}

Result<std::string> Remove(const Context& /*context*/, const WebhookArguments& arguments,
                           const Place& place) {
  const std::string target = place.target + "/" + net::PercentEncode(arguments.name);
  TRY(place.client->CallJson("DELETE", target).status());
  return std::string();
}

std::string StateText(const json::object& item) {
  const std::string error = GetStringOr(item, "error", "");
  if (GetBoolOr(item, "disabled", false)) return "disabled: " + error;
  return error.empty() ? "ok" : "fails: " + error;
}

std::string EventsText(const json::object& item) {
  std::string text;
  const json::value* const events = item.if_contains("events");
  if (events == nullptr || !events->is_array()) return text;
  for (const json::value& event : events->get_array())
    if (event.is_string()) text += (text.empty() ? "" : ",") + std::string(event.get_string());
  return text;
}

Result<std::string> List(const Context& context, const WebhookArguments& /*arguments*/,
                         const Place& place) {
  TRY_ASSIGN(const json::object reply, place.client->Get(place.target));
  const json::value* const items = reply.if_contains("items");
  if (items == nullptr || !items->is_array())
    return DataLoss("the server's answer has no list of items");
  std::string lines;
  std::vector<std::vector<std::string>> rows = {
      {"WEBHOOK", "URL", "FORMAT", "EVENTS", "DELIVERED", "DROPPED", "STATE"}};
  for (const json::value& value : items->get_array()) {
    if (!value.is_object()) return DataLoss("the server's list has an item that is no object");
    const json::object& item = value.get_object();
    lines += JsonLine(item);
    rows.push_back({GetStringOr(item, "name", ""), GetStringOr(item, "url", ""),
                    GetStringOr(item, "format", ""), EventsText(item),
                    std::to_string(GetIntOr(item, "delivered", 0)),
                    std::to_string(GetIntOr(item, "dropped", 0)), StateText(item)});
  }
  if (context.json) return lines;
  if (rows.size() > 1) return Table(rows);
  PrintNote("there are no webhooks yet; `shoal webhook set NAME --url URL` makes one");
  return std::string();
}

int Call(const Context& context, const WebhookArguments& arguments, Action action) {
  const auto place = FindPlace(context, arguments);
  if (!place.ok()) return PrintError(place.status());
  const auto text = action(context, arguments, *place);
  return text.ok() ? PrintResult(*text) : PrintError(text.status());
}

void AddSetOptions(CLI::App* sub, WebhookArguments* to) {
  sub->add_option("--url", to->url, "Where messages are sent [as before]")->type_name("URL");
  sub->add_option("--url-file", to->url_file, "File with the URL, - for standard input")
      ->type_name("FILE");
  sub->add_option("--format", to->format, "json, or slack [json]")->type_name("FORMAT");
  sub->add_option(
         "--events", to->events,
         "submitted, admitted, starting, running, suspended, queued, finishing, succeeded, "
         "failed, cancelled, separated by commas [submitted,running,suspended,succeeded,"
         "failed,cancelled]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("EVENT,…");
  sub->add_option("--secret-file", to->secret_file,
                  "File with the key of signatures, whsec_ and base64 [a new one]")
      ->type_name("FILE");
}

CLI::App* AddAction(CLI::App* parent, const char* name, const char* doc, Action action,
                    Run* chosen) {
  auto arguments = std::make_shared<WebhookArguments>();
  CLI::App* sub = parent->add_subcommand(name, doc);
  if (action != &List)
    sub->add_option("NAME", arguments->name, "Letters, digits, '-', '_' and '.'")->required();
  if (action == &Set) AddSetOptions(sub, arguments.get());
  sub->add_option("--team", arguments->team, "Team of the server [the user's only one]")
      ->type_name("TEAM");
  sub->add_flag("--all-teams", arguments->all_teams,
                "The server's own, for the jobs of all teams (administrators)");
  sub->fallthrough();  // --json and --server are the parent's
  sub->callback([arguments, action, chosen] {
    *chosen = [arguments, action](const Context& context) {
      return Call(context, *arguments, action);
    };
  });
  return sub;
}

constexpr const char* kWebhookFooter = R"help(Examples:
  shoal webhook set ops --url https://hooks.example.org/shoal
  shoal webhook set chat --format slack --url-file slack.url --events failed,succeeded
  shoal webhook list
  shoal webhook remove ops

Messages are signed and are sent again until the receiver accepts them (docs/webhooks.md).)help";

}  // namespace

void AddWebhook(CLI::App& app, Run* chosen) {
  CLI::App* sub = app.add_subcommand("webhook", "URLs that a server tells of changes of jobs");
  AddAction(sub, "set", "Make or replace a webhook", &Set, chosen)
      ->footer("Examples:\n  shoal webhook set ops --url https://hooks.example.org/shoal");
  AddAction(sub, "list", "List the webhooks and how they fare", &List, chosen)
      ->footer("Examples:\n  shoal webhook list");
  AddAction(sub, "remove", "Remove a webhook", &Remove, chosen)
      ->footer("Examples:\n  shoal webhook remove ops");
  sub->require_subcommand(1);
  sub->footer(kWebhookFooter);
}

}  // namespace shoal::cli
