#include "api/rest/sign_in_routes.h"

namespace shoal::api {
namespace {

constexpr size_t kSignInBody = size_t{64} << 10;
constexpr int64_t kMaxUri = 4096;

Parameter Needed(std::string_view name, std::string_view doc, int64_t most = 256) {
  return {.name = name, .required = true, .least = 1, .most = most, .doc = doc};
}

}  // namespace

std::vector<Route> SignInRoutes() {
  const auto begin = [](Route route) {
    route.method = Method::kPost;
    route.access = Access::kOpen;
    route.role = Role::kNone;
    route.body = Body::kJson;
    route.max_body = kSignInBody;
    route.status = 201;
    return route;
  };
  return {
      {.operation = Operation::kListSignIns,
       .path = "/api/v1/sign-in",
       .name = "listSignIns",
       .doc = "How people sign in: by `token`, and by `oidc` (docs/oidc.md)",
       .access = Access::kOpen,
       .role = Role::kNone,
       .schema = "SignIns"},
      begin({.operation = Operation::kBeginDeviceSignIn,
             .path = "/api/v1/sign-in/device",
             .name = "beginDeviceSignIn",
             .doc = "Begins a sign-in of a command: the user enters a code at the provider",
             .schema = "DeviceSignIn"}),
      begin({.operation = Operation::kFinishDeviceSignIn,
             .path = "/api/v1/sign-in/device/token",
             .name = "finishDeviceSignIn",
             .doc = "The token, once the user has agreed; until then 202 with the seconds to wait",
             .fields = {Needed("device", "`device` of the reply before")},
             .schema = "NewToken"}),
      begin({.operation = Operation::kBeginCodeSignIn,
             .path = "/api/v1/sign-in/code",
             .name = "beginCodeSignIn",
             .doc = "Begins a sign-in of a page, by authorization code with PKCE",
             .fields = {Needed("redirect_uri", "Where the browser comes back to", kMaxUri)},
             .schema = "CodeSignIn"}),
      begin({.operation = Operation::kFinishCodeSignIn,
             .path = "/api/v1/sign-in/code/token",
             .name = "finishCodeSignIn",
             .doc = "The token, for the code of the provider",
             .fields = {Needed("state", "`state` of the reply before"),
                        Needed("binding", "`binding` of the reply before"),
                        Needed("code", "With which the browser came back", kMaxUri)},
             .schema = "NewToken"}),
  };
}

}  // namespace shoal::api
