// `shoal login` and `shoal logout`: the servers that this user's commands talk to.

#include <CLI/CLI.hpp>
#include <memory>

#include "api/client/api_client.h"
#include "api/client/login_file.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/terminal/hidden_input.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

struct LoginArguments {
  std::string url;
  std::string token_file;
  std::string fingerprint;
};

constexpr size_t kMaxTokenFile = 4096;

Result<std::string> ReadToken(const LoginArguments& arguments) {
  std::string token;
  if (arguments.token_file.empty() || arguments.token_file == "-") {
    TRY_ASSIGN(token, ReadHidden("token of " + arguments.url + ": ", kMaxTokenFile));
  } else {
    TRY_ASSIGN(token, ReadFile(arguments.token_file, kMaxTokenFile));
  }
  while (!token.empty() && (token.back() == '\n' || token.back() == ' ' || token.back() == '\r'))
    token.pop_back();
  if (!token.empty()) return token;
  return InvalidArgument("got no token, expected one on standard input or by --token-file");
}

Result<std::filesystem::path> LoginFile() {
  if (auto file = api::FindLoginFile()) return *file;
  return FailedPrecondition("there is no place for the login: set HOME or XDG_CONFIG_HOME");
}

Result<std::string> SignIn(const LoginArguments& arguments) {
  api::Login login;
  TRY_ASSIGN(login.url, api::NormalizeUrl(arguments.url));
  if (!arguments.fingerprint.empty()) {
    TRY_ASSIGN(login.fingerprint, api::NormalizeFingerprint(arguments.fingerprint));
  }
  TRY_ASSIGN(const std::filesystem::path file, LoginFile());
  TRY_ASSIGN(api::Logins logins, api::ReadLogins(file));
  TRY_ASSIGN(login.token, ReadToken(arguments));
  TRY_ASSIGN(const auto client, api::ApiClient::Make(login));
  TRY_ASSIGN(const json::object me, client->Get("/api/v1/me"));
  TRY_ASSIGN(login.user, GetString(me, "user"));
  logins.default_url = login.url;
  logins.servers[login.url] = login;
  TRY(api::WriteLogins(file, logins));
  return login.user + " is signed in to " + login.url + "; " +
         "commands about jobs use this server (--server none: this machine)\n";
}

int Login(const LoginArguments& arguments) {
  const Result<std::string> done = SignIn(arguments);
  return done.ok() ? PrintConfirmation(*done) : PrintError(done.status());
}

Result<std::string> SignOut(const std::string& text) {
  TRY_ASSIGN(const std::filesystem::path file, LoginFile());
  TRY_ASSIGN(api::Logins logins, api::ReadLogins(file));
  std::string url = logins.default_url;
  if (!text.empty()) {
    TRY_ASSIGN(url, api::NormalizeUrl(text));
  }
  if (logins.servers.erase(url) == 0)
    return NotFound(url.empty() ? "there is no login" : "there is no login to " + url);
  if (logins.default_url == url) logins.default_url.clear();
  TRY(api::WriteLogins(file, logins));
  return "the token of " + url + " is forgotten here; it stays valid until it is revoked\n";
}

int Logout(const std::string& url) {
  const Result<std::string> done = SignOut(url);
  return done.ok() ? PrintConfirmation(*done) : PrintError(done.status());
}

constexpr const char* kLoginFooter = R"help(Examples:
  shoal login http://127.0.0.1:7117 --token-file /var/lib/shoal/administrator.token
  shoal login https://ml.example:7117                        asks for the token
  shoal login https://ml.example:7117 --fingerprint 3f9a…    pins a self-signed certificate

Stores the token in ~/.config/shoal/login.json, which only this user can read, after the server has
accepted it. Commands about jobs then use this server; --server URL, SHOAL_SERVER and SHOAL_TOKEN
take precedence, and --server none uses the jobs of this machine.)help";

constexpr const char* kLogoutFooter = R"help(Examples:
  shoal logout                            forgets the default server
  shoal logout https://ml.example:7117)help";

}  // namespace

void AddLogin(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<LoginArguments>();
  CLI::App* sub = app.add_subcommand("login", "Use the jobs of a server");
  sub->add_option("URL", arguments->url,
                  "Address of the server, or of several servers of one store, with commas")
      ->required();
  sub->add_option("--token-file", arguments->token_file, "File with the token [standard input]")
      ->type_name("FILE");
  sub->add_option("--fingerprint", arguments->fingerprint,
                  "SHA-256 of the server's certificate, which `shoal server` prints")
      ->type_name("HEX");
  sub->footer(kLoginFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& /*context*/) { return Login(*arguments); };
  });
}

void AddLogout(CLI::App& app, Run* chosen) {
  auto url = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("logout", "Forget the token of a server");
  sub->add_option("URL", *url, "Address of the server [the default one]");
  sub->footer(kLogoutFooter);
  sub->callback(
      [url, chosen] { *chosen = [url](const Context& /*context*/) { return Logout(*url); }; });
}

}  // namespace shoal::cli
