#include "data/objects/s3/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "net/http_client.h"

namespace shoal::data {
namespace {

constexpr size_t kMaxProfileFile = 1 << 20;
constexpr size_t kMaxAuthorities = 4 << 20;

std::string_view WithoutBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string FirstOf(std::initializer_list<std::string> values) {
  for (const std::string& value : values) {
    if (!value.empty()) return value;
  }
  return "";
}

// The profile of one file; empty without the file.
Result<Profiles> ReadProfiles(const std::string& path, bool named) {
  std::error_code error;
  if (!named && !std::filesystem::exists(path, error)) return Profiles();
  TRY_ASSIGN(const std::string text, ReadFile(path, kMaxProfileFile));
  return ParseProfiles(text, path);
}

struct ProfileFiles {
  Profiles credentials;
  Profiles config;
  std::string name;
  std::string files;  // for messages

  std::string Get(const std::string& field) const {
    for (const Profiles* profiles : {&credentials, &config}) {
      const auto profile = profiles->find(name);
      if (profile == profiles->end()) continue;
      if (const auto found = profile->second.find(field); found != profile->second.end())
        return found->second;
    }
    return "";
  }
};

Result<ProfileFiles> ReadProfileFiles(const std::function<std::string(const char*)>& env) {
  ProfileFiles all;
  const std::string named = env("AWS_PROFILE");
  all.name = FirstOf({named, "default"});
  const std::string home = env("HOME");
  const std::string credentials = env("AWS_SHARED_CREDENTIALS_FILE");
  const std::string config = env("AWS_CONFIG_FILE");
  const std::string credentials_file = FirstOf({credentials, home + "/.aws/credentials"});
  const std::string config_file = FirstOf({config, home + "/.aws/config"});
  all.files = credentials_file + " and " + config_file;
  TRY_ASSIGN(all.credentials, ReadProfiles(credentials_file, !credentials.empty()));
  TRY_ASSIGN(all.config, ReadProfiles(config_file, !config.empty()));
  if (!named.empty() && !all.credentials.contains(named) && !all.config.contains(named)) {
    return InvalidArgument(
        fmt::format("AWS_PROFILE: got {}, which is in neither {}", named, all.files));
  }
  return all;
}

Result<S3Credentials> CredentialsOf(const std::function<std::string(const char*)>& env,
                                    const ProfileFiles& profiles) {
  S3Credentials credentials;
  credentials.access_key = env("AWS_ACCESS_KEY_ID");
  credentials.secret_key = env("AWS_SECRET_ACCESS_KEY");
  credentials.session_token = env("AWS_SESSION_TOKEN");
  credentials.origin = "the environment";
  if (credentials.access_key.empty() != credentials.secret_key.empty())
    return InvalidArgument(
        "expected both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, got one of them");
  if (!credentials.access_key.empty()) return credentials;
  credentials = {profiles.Get("aws_access_key_id"), profiles.Get("aws_secret_access_key"),
                 profiles.Get("aws_session_token"), "the profile " + profiles.name};
  if (credentials.access_key.empty() != credentials.secret_key.empty()) {
    return InvalidArgument(
        fmt::format("profile {}: expected both aws_access_key_id and aws_secret_access_key in {}",
                    profiles.name, profiles.files));
  }
  if (credentials.access_key.empty()) credentials.origin = "none";
  return credentials;
}

}  // namespace

std::pair<std::string, std::string> S3Settings::PlaceOf(const std::string& bucket) const {
  const std::string amazon = fmt::format("s3.{}.amazonaws.com", region);
  if (endpoint.empty()) {
    if (path_style || bucket.find('.') != std::string::npos)
      return {"https://" + amazon, "/" + bucket};
    return {fmt::format("https://{}.{}", bucket, amazon), ""};
  }
  if (path_style) return {endpoint, "/" + bucket};
  const size_t host = endpoint.find("://") + 3;
  return {endpoint.substr(0, host) + bucket + "." + endpoint.substr(host), ""};
}

Result<S3Settings> ReadS3Settings(const std::function<std::string(const char*)>& env) {
  TRY_ASSIGN(const ProfileFiles profiles, ReadProfileFiles(env));
  S3Settings settings;
  TRY_ASSIGN(settings.credentials, CredentialsOf(env, profiles));
  settings.region = FirstOf(
      {env("AWS_REGION"), env("AWS_DEFAULT_REGION"), profiles.Get("region"), settings.region});
  settings.endpoint =
      FirstOf({env("AWS_ENDPOINT_URL_S3"), env("AWS_ENDPOINT_URL"), profiles.Get("endpoint_url")});
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!settings.endpoint.empty()) {
    const auto url = net::ParseUrl(settings.endpoint);
    if (!url.ok()) return url.status().With("the endpoint of S3 (AWS_ENDPOINT_URL_S3)");
    if (!url->prefix.empty() || !url->user_info.empty())
      return InvalidArgument(
          "the endpoint of S3 (AWS_ENDPOINT_URL_S3): got a path or a user, "
          "expected https://HOST[:PORT]");
  }
  const std::string style = profiles.Get("s3.addressing_style");
  if (!style.empty() && style != "path" && style != "virtual" && style != "auto") {
    return InvalidArgument(
        fmt::format("profile {}: s3.addressing_style: got {}, expected path, virtual or auto",
                    profiles.name, style));
  }
  settings.path_style = style == "path" || (style != "virtual" && !settings.endpoint.empty());
  if (const std::string bundle = env("AWS_CA_BUNDLE"); !bundle.empty()) {
    auto pem = ReadFile(bundle, kMaxAuthorities);
    if (!pem.ok()) return pem.status().With("AWS_CA_BUNDLE");
    settings.authorities = *pem;
  }
  return settings;
}

Result<Profiles> ParseProfiles(std::string_view text, const std::string& file) {
  Profiles profiles;
  std::map<std::string, std::string>* section = nullptr;
  std::string group;  // of indented lines
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view trimmed = WithoutBlanks(whole);
    if (trimmed.empty() || trimmed[0] == '#' || trimmed[0] == ';') continue;
    if (trimmed[0] == '[') {
      const size_t close = trimmed.find(']');
      if (close == std::string_view::npos)
        return InvalidArgument(fmt::format("{}:{}: expected ']' after the profile", file, line));
      std::string_view name = WithoutBlanks(trimmed.substr(1, close - 1));
      if (name.starts_with("profile ")) name = WithoutBlanks(name.substr(8));
      section = &profiles[std::string(name)];
      group.clear();
      continue;
    }
    const size_t equals = trimmed.find('=');
    if (section == nullptr || equals == std::string_view::npos)
      return InvalidArgument(
          fmt::format("{}:{}: expected NAME = VALUE below a [PROFILE]", file, line));
    const std::string name(WithoutBlanks(trimmed.substr(0, equals)));
    const std::string_view value = WithoutBlanks(trimmed.substr(equals + 1));
    const bool indented = whole[0] == ' ' || whole[0] == '\t';
    if (!indented) group = value.empty() ? name : "";
    (*section)[indented && !group.empty() ? group + "." + name : name] = value;
  }
  return profiles;
}

}  // namespace shoal::data
