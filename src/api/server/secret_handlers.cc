#include <utility>

#include "api/server/handlers.h"
#include "base/base64.h"
#include "base/seal.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kNoContent = 204;

void AnswerNothing(const CallPtr& call, const Status& done) {
  if (!done.ok()) return call->answer(Problem(done));
  call->answer({kNoContent, {}, ""});
}

// The value of a request, from one of its two fields.
Result<std::string> ValueOf(const Call& call) {
  const bool encoded = call.arguments.Has("base64");
  if (encoded == call.arguments.Has("value"))
    return InvalidArgument("value: expected one of the fields value and base64");
  if (!encoded) return call.arguments.Text("value");
  auto value = DecodeBase64(call.arguments.Text("base64"));
  if (!value.ok()) return InvalidArgument("base64: got a text that is not base64");
  return value;
}

}  // namespace

void ListSecrets(const Backend& backend, const CallPtr& call) {
  const auto secrets = backend.secrets->List(call->team);
  if (!secrets.ok()) return call->answer(Problem(secrets.status()));
  json::array items;
  for (const controller::SecretInfo& secret : *secrets)
    items.push_back({{"name", secret.name},
                     {"changed", FormatWall(secret.changed)},
                     {"by", secret.by},
                     {"bytes", secret.bytes}});
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

void SetSecret(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.PathText("name");
  auto value = ValueOf(*call);
  if (!value.ok()) return call->answer(Problem(value.status()));
  const Status done = backend.secrets->Set(call->team, call->target, *value, call->principal.user);
  EraseSecret(&*value);
  AnswerNothing(call, done);
}

void RemoveSecret(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.PathText("name");
  AnswerNothing(call, backend.secrets->Remove(call->team, call->target));
}

}  // namespace shoal::api
