#include "serving/endpoint/inference_route.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace shoal::serving {
namespace {

using Verb = InferenceVerb;
using Path = std::vector<std::string>;

Status NoPath(const net::HttpServerRequest& request) {
  constexpr size_t kShown = 200;
  return NotFound(EscapedUtf8(fmt::format(
      "there is no {} {}; docs/serving.md lists the requests, GET /v2 says what this is",
      request.method, request.target.substr(0, kShown))));
}

Result<uint64_t> VersionOf(std::string_view text) {
  uint64_t version = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), version);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && version > 0)
    return version;
  constexpr size_t kShown = 40;
  return InvalidArgument(EscapedUtf8(
      fmt::format("version: got '{}', expected a number such as 3", text.substr(0, kShown))));
}

bool IsPost(Verb verb) {
  return verb == Verb::kIndex || verb == Verb::kInferV2 || verb == Verb::kPredictV1 ||
         verb == Verb::kVectorsV1;
}

// The segments behind the model's name, and behind "versions/V" if they are there.
Result<Path> TakeVersion(const Path& path, InferenceRoute* route) {
  constexpr size_t kName = 2;
  route->model = path[kName];
  Path rest(path.begin() + kName + 1, path.end());
  if (rest.size() < 2 || rest[0] != "versions") return rest;
  TRY_ASSIGN(route->version, VersionOf(rest[1]));
  rest.erase(rest.begin(), rest.begin() + 2);
  return rest;
}

Result<InferenceRoute> RouteV2(const net::HttpServerRequest& request) {
  const Path& path = request.path;
  if (path.size() == 1) return InferenceRoute{Verb::kServer};
  if (path == Path{"v2", "health", "live"}) return InferenceRoute{Verb::kLive};
  if (path == Path{"v2", "health", "ready"}) return InferenceRoute{Verb::kReady};
  if (path == Path{"v2", "repository", "index"}) return InferenceRoute{Verb::kIndex};
  if (path.size() < 3 || path[1] != "models") return NoPath(request);
  InferenceRoute route;
  TRY_ASSIGN(const Path rest, TakeVersion(path, &route));
  if (rest.empty()) {
    route.verb = Verb::kModelMetadata;
  } else if (rest == Path{"ready"}) {
    route.verb = Verb::kModelReady;
  } else if (rest == Path{"infer"}) {
    route.verb = Verb::kInferV2;
  } else {
    return NoPath(request);
  }
  return route;
}

Result<InferenceRoute> RouteV1(const net::HttpServerRequest& request) {
  Path path = request.path;
  if (path.size() < 3 || path[1] != "models") return NoPath(request);
  const size_t colon = path.back().rfind(':');
  std::string verb;
  if (colon != std::string::npos) {
    verb = path.back().substr(colon + 1);
    path.back().resize(colon);
  }
  InferenceRoute route;
  TRY_ASSIGN(const Path rest, TakeVersion(path, &route));
  const bool status = rest.empty() || rest == Path{"metadata"};
  if (!status || (!verb.empty() && !rest.empty())) return NoPath(request);
  if (verb.empty()) {
    route.verb = Verb::kModelStatus;
  } else if (verb == "predict") {
    route.verb = Verb::kPredictV1;
  } else if (verb == "vectors") {
    route.verb = Verb::kVectorsV1;
  } else {
    return NoPath(request);
  }
  return route;
}

Result<InferenceRoute> FindRoute(const net::HttpServerRequest& request) {
  const Path& path = request.path;
  if (path == Path{"metrics"}) return InferenceRoute{Verb::kMetrics};
  if (!path.empty() && path[0] == "v2") return RouteV2(request);
  if (!path.empty() && path[0] == "v1") return RouteV1(request);
  return NoPath(request);
}

}  // namespace

Result<InferenceRoute> RouteOf(const net::HttpServerRequest& request) {
  TRY_ASSIGN(InferenceRoute route, FindRoute(request));
  const bool post = IsPost(route.verb);
  const bool fits =
      post ? request.method == "POST" : request.method == "GET" || request.method == "HEAD";
  if (fits) return route;
  return Unimplemented(fmt::format("got the method {}, expected {}",
                                   EscapedUtf8(request.method.substr(0, 20)),
                                   post ? "POST" : "GET"));
}

}  // namespace shoal::serving
