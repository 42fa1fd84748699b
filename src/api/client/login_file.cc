#include "api/client/login_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "net/http_client.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFile = size_t{1} << 20;
constexpr mode_t kOthers = 077;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Result<Logins> ParseLogins(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  Logins logins;
  logins.default_url = GetStringOr(object, "default", "");
  const json::value* const servers = object.if_contains("servers");
  if (servers == nullptr || !servers->is_object()) return logins;
  for (const auto& field : servers->get_object()) {
    if (!field.value().is_object()) return InvalidArgument("servers: expected objects");
    const json::object& one = field.value().get_object();
    Login login;
    login.url = field.key();
    login.token = GetStringOr(one, "token", "");
    login.fingerprint = GetStringOr(one, "fingerprint", "");
    login.user = GetStringOr(one, "user", "");
    logins.servers[login.url] = std::move(login);
  }
  return logins;
}

}  // namespace

std::optional<fs::path> FindLoginFile() {
  const std::string config = Variable("XDG_CONFIG_HOME");
  if (!config.empty()) return fs::path(config) / "shoal" / "login.json";
  const std::string home = Variable("HOME");
  if (home.empty()) return std::nullopt;
  return fs::path(home) / ".config" / "shoal" / "login.json";
}

Result<Logins> ReadLogins(const fs::path& file) {
  // A directory that is missing, is a file, or may not be entered (another user's home) has no
  // logins.
  std::error_code error;
  if (!fs::exists(file, error)) return Logins();
  Result<UniqueFd> fd = OpenFile(file, O_RDONLY);
  if (!fd.ok()) return fd.status();
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0) return ErrnoStatus(errno, file.string());
  if ((info.st_mode & kOthers) != 0)
    return PermissionDenied(file.string() +
                            " holds tokens, and other users may read it; `chmod 600` it, and "
                            "`shoal login` again if they may have read it");
  TRY_ASSIGN(const std::string text, ReadFile(file, kMaxFile));
  Result<Logins> logins = ParseLogins(text);
  if (logins.ok()) return logins;
  return InvalidArgument(file.string() + ": " + logins.status().message() +
                         "; remove it and `shoal login` again");
}

Status WriteLogins(const fs::path& file, const Logins& logins) {
  json::object servers;
  for (const auto& [url, login] : logins.servers) {
    json::object one{{"token", login.token}};
    if (!login.fingerprint.empty()) one["fingerprint"] = login.fingerprint;
    if (!login.user.empty()) one["user"] = login.user;
    servers[url] = std::move(one);
  }
  const json::object object{{"default", logins.default_url}, {"servers", std::move(servers)}};
  TRY(MakeDirectories(file.parent_path(), 0700));
  return WriteFileAtomically(file, ToPrettyText(object) + "\n", 0600);
}

namespace {

Result<std::string> NormalizeOneUrl(const std::string& text) {
  std::string url = text;
  if (url.find("://") == std::string::npos) {
    const bool loopback =
        url.starts_with("localhost") || url.starts_with("127.") || url.starts_with("[::1]");
    url = (loopback ? "http://" : "https://") + url;
  }
  while (url.ends_with('/')) url.pop_back();
  const size_t host = url.find("://") + 3;
  const size_t path = std::min(url.find('/', host), url.size());
  url = Lower(url.substr(0, path)) + url.substr(path);
  const Result<net::Url> parsed = net::ParseUrl(url);
  if (!parsed.ok()) return InvalidArgument("the server " + text + ": " + parsed.status().message());
  if (!parsed->user_info.empty())
    return InvalidArgument("the server " + text +
                           ": got a user in the URL, expected a token by `shoal login`");
  return url;
}

}  // namespace

std::vector<std::string> SplitUrls(const std::string& urls) {
  std::vector<std::string> list;
  for (size_t at = 0; at <= urls.size();) {
    const size_t comma = std::min(urls.find(',', at), urls.size());
    list.push_back(urls.substr(at, comma - at));
    at = comma + 1;
  }
  return list;
}

Result<std::string> NormalizeUrl(const std::string& text) {
  std::string urls;
  for (const std::string& one : SplitUrls(text)) {
    TRY_ASSIGN(const std::string url, NormalizeOneUrl(one));
    urls += (urls.empty() ? "" : ",") + url;
  }
  return urls;
}

Result<std::string> NormalizeFingerprint(const std::string& text) {
  constexpr size_t kDigits = 64;
  std::string digits = Lower(text);
  std::erase_if(digits, [](char c) { return c == ':' || c == ' ' || c == '\n'; });
  const size_t prefix = digits.starts_with("sha256") ? std::string_view("sha256").size() : 0;
  const bool hex = std::all_of(digits.begin() + static_cast<ptrdiff_t>(prefix), digits.end(),
                               [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (hex && digits.size() == prefix + kDigits) return digits.substr(prefix);
  return InvalidArgument("got the fingerprint " + text +
                         ", expected the 64 hex digits that `shoal server` prints");
}

namespace {

// Of this URL, or of several servers of which it is one.
std::optional<Login> FindLogin(const Logins& logins, const std::string& url) {
  if (const auto found = logins.servers.find(url); found != logins.servers.end())
    return found->second;
  for (const auto& [urls, login] : logins.servers) {
    const std::vector<std::string> all = SplitUrls(urls);
    if (std::ranges::find(all, url) != all.end()) return login;
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<Login>> ChooseServer(const std::string& option) {
  const std::string named = option.empty() ? Variable("SHOAL_SERVER") : option;
  if (named == kEmbedded) return std::optional<Login>();
  const std::optional<fs::path> file = FindLoginFile();
  Logins logins;
  if (file) {
    TRY_ASSIGN(logins, ReadLogins(*file));
  }
  const std::string text = named.empty() ? logins.default_url : named;
  if (text.empty()) return std::optional<Login>();
  Login login;
  TRY_ASSIGN(login.url, NormalizeUrl(text));
  if (const std::optional<Login> found = FindLogin(logins, login.url)) login = *found;
  if (const std::string token = Variable("SHOAL_TOKEN"); !token.empty()) login.token = token;
  if (login.token.empty())
    return Unauthenticated("there is no token for the server " + login.url + "; `shoal login " +
                           login.url + "` stores one, or set SHOAL_TOKEN");
  return std::optional<Login>(std::move(login));
}

}  // namespace shoal::api
