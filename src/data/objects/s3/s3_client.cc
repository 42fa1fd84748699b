#include "data/objects/s3/s3_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/address.h"
#include "net/http_client.h"

namespace shoal::data {
namespace {

// What the error's code asks of the user.
std::string RemedyOf(std::string_view code, const S3Settings& settings,
                     const net::HttpReply& reply) {
  const std::string& origin = settings.credentials.origin;
  if (code == "ExpiredToken" || code == "TokenRefreshRequired" || code == "InvalidToken")
    return "get new temporary credentials (those of " + origin + " are not valid any more)";
  if (code == "SignatureDoesNotMatch" || code == "InvalidAccessKeyId")
    return "check the access key and secret key of " + origin;
  if (code == "RequestTimeTooSkewed") return "set this machine's clock";
  if (code == "NoSuchBucket")
    return settings.endpoint.empty()
               ? "check the bucket's name; for another service set AWS_ENDPOINT_URL_S3"
               : "check the bucket's name, and the endpoint " + settings.endpoint;
  const std::string region = reply.Header("x-amz-bucket-region");
  if ((code == "PermanentRedirect" || code == "AuthorizationHeaderMalformed" ||
       code == "IllegalLocationConstraintException" || reply.status == 301) &&
      !region.empty())
    return "the bucket is in the region " + region + ": set AWS_REGION=" + region;
  if (reply.status != 401 && reply.status != 403) return "";
  if (settings.credentials.access_key.empty())
    return "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
           "AWS_PROFILE";
  return "ask for the permission for the access key " + settings.credentials.access_key + " of " +
         origin;
}

std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  constexpr size_t kMost = 300;
  if (text.size() > kMost) text.resize(kMost);
  while (text.ends_with('.') || text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

Result<net::HttpReply> S3Client::Send(const ObjectUri& uri, const S3Request& request) const {
  const auto [server, folder] = settings_.PlaceOf(uri.authority);
  TRY_ASSIGN(const net::Url url, net::ParseUrl(server));
  const std::string host = net::FormatHost(url);
  TransportCall call;
  call.server = server;
  // An error is told in full, however short the expected body is.
  call.max_body = std::max<size_t>(request.max_body, 64 << 10);
  call.repeat = request.repeat;
  call.request = [&, folder = folder](WallTime now) -> Result<net::HttpRequest> {
    net::HttpRequest made;
    made.method = request.method;
    made.target = folder + "/" + EncodeKey(uri.path);
    if (!request.query.empty()) made.target += "?" + request.query;
    made.headers = request.headers;
    made.body = request.body;
    SignRequest(settings_.credentials, {.region = settings_.region}, host, now, &made);
    return made;
  };
  auto reply = transport_->Run(call);
  if (!reply.ok()) return reply.status().With(uri.text());
  return reply;
}

Status S3Client::ErrorOf(const ObjectUri& uri, const net::HttpReply& reply) const {
  const auto xml = ParseXml(reply.body);
  const std::string code = xml.ok() ? OneLine(xml->TextOf("Code")) : "";
  const std::string said = xml.ok() ? OneLine(xml->TextOf("Message")) : "";
  std::string text = uri.text();
  if (reply.status == 404 && (code.empty() || code == "NoSuchKey")) {
    text += ": there is no such object";
  } else {
    text += fmt::format(": the store answers {}", reply.status);
    if (!code.empty()) text += " " + code;
    if (!said.empty()) text += " (" + said + ")";
  }
  const std::string remedy = RemedyOf(code, settings_, reply);
  if (!remedy.empty()) text += "; " + remedy;
  return StatusOfHttp(reply.status, std::move(text));
}

}  // namespace shoal::data
