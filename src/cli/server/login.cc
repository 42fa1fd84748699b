// `shoal login` and `shoal logout`: the servers that this user's commands talk to.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <thread>

#include "api/client/api_client.h"
#include "api/client/login_file.h"
#include "base/clock.h"
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
  bool oidc = false;
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

// Whether the token comes from the server's OpenID Connect provider: asked for, or offered to a
// person who named no token.
Result<bool> WantsProvider(const LoginArguments& arguments, const api::ApiClient& client) {
  if (arguments.oidc) return true;
  if (!arguments.token_file.empty() || ::isatty(STDIN_FILENO) == 0) return false;
  TRY_ASSIGN(const json::object ways, client.Get("/api/v1/sign-in"));
  return ways.contains("issuer");
}

// A token by the device flow: the user enters a code at the provider, in any browser.
Result<std::string> TokenOfProvider(const api::ApiClient& client) {
  constexpr const char* kTarget = "/api/v1/sign-in/device";
  TRY_ASSIGN(const json::object begun, client.CallJson("POST", kTarget));
  TRY_ASSIGN(const std::string device, GetString(begun, "device"));
  TRY_ASSIGN(const std::string uri, GetString(begun, "verification_uri"));
  TRY_ASSIGN(const std::string code, GetString(begun, "user_code"));
  const std::string complete = GetStringOr(begun, "verification_uri_complete", "");
  PrintNote("open " + (complete.empty() ? uri : complete) + " in a browser, on any device, and " +
            (complete.empty() ? "enter" : "compare") + " the code " + code);
  const TimePoint end =
      RealClock::Get()->Now() + std::chrono::seconds(GetIntOr(begun, "expires_in", 600));
  int64_t interval = GetIntOr(begun, "interval", 5);
  while (RealClock::Get()->Now() < end) {
    std::this_thread::sleep_for(std::chrono::seconds(std::clamp<int64_t>(interval, 1, 60)));
    TRY_ASSIGN(const json::object reply,
               client.CallJson("POST", std::string(kTarget) + "/token", {{"device", device}}));
    if (reply.contains("token")) return GetString(reply, "token");
    interval = GetIntOr(reply, "interval", interval);
  }
  return DeadlineExceeded("the code was not entered in time; sign in again");
}

Result<std::string> SignIn(const LoginArguments& arguments) {
  api::Login login;
  TRY_ASSIGN(login.url, api::NormalizeUrl(arguments.url));
  if (!arguments.fingerprint.empty()) {
    TRY_ASSIGN(login.fingerprint, api::NormalizeFingerprint(arguments.fingerprint));
  }
  TRY_ASSIGN(const std::filesystem::path file, LoginFile());
  TRY_ASSIGN(api::Logins logins, api::ReadLogins(file));
  if (arguments.oidc && !arguments.token_file.empty())
    return InvalidArgument("got --oidc and --token-file, expected one of them");
  TRY_ASSIGN(const auto stranger, api::ApiClient::Make(login));
  TRY_ASSIGN(const bool by_provider, WantsProvider(arguments, *stranger));
  TRY_ASSIGN(login.token, by_provider ? TokenOfProvider(*stranger) : ReadToken(arguments));
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
  shoal login https://ml.example:7117 --oidc                 in a browser, at the server's provider

Without --token-file a person is sent to the provider if the server has one (docs/oidc.md). Stores the token in ~/.config/shoal/login.json, which only this user can read, after the server has
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
  sub->add_flag("--oidc", arguments->oidc,
                "Sign in at the server's OpenID Connect provider, in a browser on any device");
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
