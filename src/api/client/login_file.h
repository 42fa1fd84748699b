// The servers that this user is signed in to: `shoal login` writes it, every command reads it.
//
//   $XDG_CONFIG_HOME/shoal/login.json, else ~/.config/shoal/login.json; mode 0600
//   {"default": "https://host:7117",
//    "servers": {"https://host:7117": {"token": "shoal_…", "fingerprint": "…", "user": "ada"}}}
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::api {

// How to reach a server. Plain value; secret.
struct Login {
  std::string url;  // or those of several servers of one store, separated by commas
  std::string token;
  std::string fingerprint;  // SHA-256 of its certificate, in hex; empty: authorities decide
  std::string user;         // for messages
};

struct Logins {
  std::string default_url;
  std::map<std::string, Login> servers;  // by URL
};

// nullopt if neither XDG_CONFIG_HOME nor HOME is set.
std::optional<std::filesystem::path> FindLoginFile();
// Without a file: no logins. InvalidArgument for a damaged one; PermissionDenied if other users may
// read or write it.
Result<Logins> ReadLogins(const std::filesystem::path& file);
Status WriteLogins(const std::filesystem::path& file, const Logins& logins);

// "https://host:7117" of "HTTPS://Host:7117/": scheme and host in lower case, without '/' at the
// end, with the scheme http for the loopback and https otherwise if there is none.
// Several URLs, separated by commas, are normalized each. InvalidArgument for what is no http(s)
// URL.
Result<std::string> NormalizeUrl(const std::string& text);

// The URLs of a list that NormalizeUrl has returned.
std::vector<std::string> SplitUrls(const std::string& urls);

// The fingerprint without colons and blanks, in lower case. InvalidArgument unless it is 64 hex
// digits.
Result<std::string> NormalizeFingerprint(const std::string& text);

// Name that selects the embedded controller instead of a server.
inline constexpr const char* kEmbedded = "none";

// The server that a command talks to: `option` (--server), else SHOAL_SERVER, else the default of
// the logins; nullopt: the embedded controller. One of several servers that are signed in to
// together stands for all of them. The token is $SHOAL_TOKEN, else that of the login.
// Unauthenticated without a token, with the remedy. Costs one open() where no server is named.
Result<std::optional<Login>> ChooseServer(const std::string& option);

}  // namespace shoal::api
