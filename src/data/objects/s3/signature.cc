#include "data/objects/s3/signature.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/id.h"

namespace shoal::data {
namespace {

int DigitOf(char hex) { return hex <= '9' ? hex - '0' : hex - 'a' + 10; }

std::string HmacBytes(std::string_view key, std::string_view message) {
  const std::string hex = HmacSha256Hex(key, message);
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(DigitOf(hex[i]) * 16 + DigitOf(hex[i + 1]));
  return bytes;
}

std::string CredentialScope(const SigningScope& scope, const std::string& timestamp) {
  return fmt::format("{}/{}/{}/aws4_request", timestamp.substr(0, 8), scope.region, scope.service);
}

std::string NamesOf(const SignedHeaders& headers) {
  std::string names;
  for (const auto& [name, value] : headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

// The parameters in order of their names, then values; one without '=' gets an empty value.
std::string CanonicalQuery(std::string_view query) {
  std::vector<std::string> parts;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    std::string part(query.substr(0, end));
    if (part.find('=') == std::string::npos) part += '=';
    parts.push_back(std::move(part));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  // '=' sorts behind '-' and digits, so names are compared without it.
  std::sort(parts.begin(), parts.end(), [](const std::string& a, const std::string& b) {
    const size_t x = a.find('=');
    const size_t y = b.find('=');
    const int names = a.compare(0, x, b, 0, y);
    return names != 0 ? names < 0 : a.substr(x) < b.substr(y);
  });
  return fmt::format("{}", fmt::join(parts, "&"));
}

std::string WithoutOuterBlanks(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  std::string value;
  for (const char c : text.substr(begin, text.find_last_not_of(' ') - begin + 1)) {
    if (c != ' ' || !value.ends_with(' ')) value += c;
  }
  return value;
}

}  // namespace

std::string EncodeKey(std::string_view key) {
  std::string path;
  while (true) {
    const size_t slash = std::min(key.find('/'), key.size());
    path += net::PercentEncode(key.substr(0, slash));
    if (slash == key.size()) return path;
    path += '/';
    key.remove_prefix(slash + 1);
  }
}

std::string CanonicalRequest(const std::string& method, const std::string& target,
                             const SignedHeaders& headers, const std::string& payload_digest) {
  const size_t question = std::min(target.find('?'), target.size());
  std::string text = fmt::format(
      "{}\n{}\n{}\n", method, target.substr(0, question),
      CanonicalQuery(std::string_view(target).substr(std::min(question + 1, target.size()))));
  for (const auto& [name, value] : headers) text += name + ":" + WithoutOuterBlanks(value) + "\n";
  return text + "\n" + NamesOf(headers) + "\n" + payload_digest;
}

std::string SignatureOf(const S3Credentials& credentials, const SigningScope& scope,
                        const std::string& timestamp, const std::string& canonical_request) {
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", timestamp, CredentialScope(scope, timestamp),
                  Sha256Hex(canonical_request));
  std::string key = HmacBytes("AWS4" + credentials.secret_key, timestamp.substr(0, 8));
  for (const std::string& part : {scope.region, scope.service, std::string("aws4_request")})
    key = HmacBytes(key, part);
  return HmacSha256Hex(key, to_sign);
}

void SignRequest(const S3Credentials& credentials, const SigningScope& scope,
                 const std::string& host, WallTime now, net::HttpRequest* request) {
  if (credentials.access_key.empty()) return;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const std::string timestamp =
      fmt::format("{:%Y%m%dT%H%M%S}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
  const std::string digest = Sha256Hex(request->body);
  request->headers.emplace_back("x-amz-date", timestamp);
  request->headers.emplace_back("x-amz-content-sha256", digest);
  if (!credentials.session_token.empty())
    request->headers.emplace_back("x-amz-security-token", credentials.session_token);
  SignedHeaders headers{{"host", host}};
  for (const auto& [name, value] : request->headers) {
    std::string lower(name);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    headers.emplace_back(std::move(lower), value);
  }
  std::sort(headers.begin(), headers.end());
  const std::string canonical = CanonicalRequest(request->method, request->target, headers, digest);
  request->headers.emplace_back(
      "Authorization",
      fmt::format("AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                  credentials.access_key, CredentialScope(scope, timestamp), NamesOf(headers),
                  SignatureOf(credentials, scope, timestamp, canonical)));
}

}  // namespace shoal::data
