#include "api/rest/openapi.h"

#include <utility>
#include <vector>

#include "api/rest/route.h"
#include "api/rest/schemas.h"

namespace shoal::api {
namespace {

constexpr const char* kJsonType = "application/json";
constexpr const char* kProblemType = "application/problem+json";

json::object Ref(std::string_view name) {
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

json::object SchemaOf(const Parameter& parameter, bool in_query) {
  json::object schema;
  if (!parameter.doc.empty()) schema["description"] = parameter.doc;
  switch (parameter.kind) {
    case Kind::kText:
      schema["type"] = "string";
      schema["maxLength"] = parameter.most;
      if (parameter.least > 0) schema["minLength"] = parameter.least;
      break;
    case Kind::kInteger:
      schema["type"] = "integer";
      schema["minimum"] = parameter.least;
      schema["maximum"] = parameter.most;
      break;
    case Kind::kBoolean:
      schema["type"] = "boolean";
      break;
    case Kind::kTime:
      schema["type"] = "string";
      schema["format"] = "date-time";
      break;
    case Kind::kObject:
      schema["type"] = "object";
      break;
    case Kind::kTexts:
    case Kind::kObjects:
      schema["type"] = "array";
      schema["maxItems"] = parameter.most;
      schema["items"] = json::object{{"type", "string"}, {"minLength", 1}};
      break;
  }
  if (!parameter.choices.empty()) {
    json::array choices;
    std::string_view rest = parameter.choices;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('|'), rest.size());
      choices.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    schema["enum"] = std::move(choices);
  }
  if (in_query) schema.erase("description");
  return schema;
}

json::array ParametersOf(const Route& route) {
  json::array all;
  std::string_view rest = route.path;
  for (size_t open = rest.find('{'); open != std::string_view::npos; open = rest.find('{')) {
    const size_t close = rest.find('}', open);
    const std::string_view name = rest.substr(open + 1, close - open - 1);
    json::object schema{{"type", "string"}, {"minLength", 1}, {"maxLength", 128}};
    if (name == "sha256") schema["pattern"] = "^[0-9a-f]{64}$";
    all.push_back(
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", std::move(schema)}});
    rest.remove_prefix(close);
  }
  for (const Parameter& parameter : route.query) {
    all.push_back({{"name", parameter.name},
                   {"in", "query"},
                   {"required", parameter.required},
                   {"description", parameter.doc},
                   {"schema", SchemaOf(parameter, true)}});
  }
  const auto header = [&](std::string_view name, std::string_view doc) {
    all.push_back({{"name", name},
                   {"in", "header"},
                   {"required", false},
                   {"description", doc},
                   {"schema", json::object{{"type", "string"}, {"maxLength", 256}}}});
  };
  if (route.conditional) header("If-Match", "The job's ETag: 412 if it has changed since");
  if (route.operation == Operation::kSubmitJob)
    header("Idempotency-Key", "A text of the client; a repetition returns the first job");
  return all;
}

json::object BodyOf(const Route& route) {
  if (route.body == Body::kBytes) {
    return {{"required", true},
            {"content", json::object{{"application/octet-stream", json::object()}}}};
  }
  json::object properties;
  json::array required;
  for (const Parameter& field : route.fields) {
    properties[field.name] = SchemaOf(field, false);
    if (field.required) required.emplace_back(field.name);
  }
  const bool needed = !required.empty();
  json::object schema{
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (needed) schema["required"] = std::move(required);
  return {{"required", needed},
          {"content", json::object{{kJsonType, json::object{{"schema", std::move(schema)}}}}}};
}

json::object SuccessOf(const Route& route) {
  json::object reply{{"description", "Success"}};
  json::object content;
  if (route.reply == Reply::kJson) content[kJsonType] = json::object{{"schema", Ref(route.schema)}};
  if (route.reply == Reply::kText)
    content["text/plain"] = json::object{{"schema", json::object{{"type", "string"}}}};
  if (route.reply == Reply::kJsonLines) content["application/jsonl"] = json::object();
  if (route.reply == Reply::kBytes) content["application/octet-stream"] = json::object();
  const bool events = route.reply == Reply::kEvents || route.operation == Operation::kListEvents ||
                      route.operation == Operation::kListJobEvents ||
                      route.operation == Operation::kReadSqlEvents;
  if (events) content["text/event-stream"] = json::object();
  if (!content.empty()) reply["content"] = std::move(content);
  return reply;
}

json::object RepliesOf(const Route& route) {
  const json::object problem{
      {"description", "An error, with one sentence"},
      {"content", json::object{{kProblemType, json::object{{"schema", Ref("Problem")}}}}}};
  json::object replies;
  const int status = route.reply == Reply::kWebSocket ? 101 : route.status;
  replies[std::to_string(status)] = SuccessOf(route);
  replies["4XX"] = problem;
  replies["5XX"] = problem;
  if (route.operation == Operation::kReady)
    replies["503"] = json::object{{"description", "Not ready, with the reason"}};
  return replies;
}

json::object OperationOf(const Route& route) {
  json::object operation{{"operationId", route.name}, {"summary", route.doc}};
  json::array parameters = ParametersOf(route);
  if (!parameters.empty()) operation["parameters"] = std::move(parameters);
  if (route.body != Body::kNone) operation["requestBody"] = BodyOf(route);
  operation["responses"] = RepliesOf(route);
  if (route.access == Access::kOpen) operation["security"] = json::array();
  if (route.scope) operation["x-shoal-scope"] = NameOf(*route.scope);
  if (route.access != Access::kOpen) operation["x-shoal-role"] = NameOf(route.role);
  return operation;
}

std::string_view AccessText(Access access) {
  switch (access) {
    case Access::kOpen:
      return "no token";
    case Access::kSignedIn:
      return "any user";
    case Access::kAnyTeam:
      return "in any team";
    case Access::kJob:
      return "in the job's team";
    case Access::kOwnJob:
      return "own job; operator: any of the team";
    case Access::kTeam:
      return "in the named team";
    case Access::kServer:
      return "of the server";
  }
  return "";
}

}  // namespace

json::object OpenApiDocument(const std::string& version) {
  json::object paths;
  for (const Route& route : Routes()) {
    std::string method(NameOf(route.method));
    for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
    json::value& path = paths[route.path];
    if (!path.is_object()) path = json::object();
    path.get_object()[method] = OperationOf(route);
  }
  json::object components{{"schemas", ReplySchemas()}};
  components["securitySchemes"] =
      json::object{{"token", json::object{{"type", "http"}, {"scheme", "bearer"}}}};
  return {{"openapi", "3.1.0"},
          {"info", json::object{{"title", "Shoal"},
                                {"version", version},
                                {"description", "Jobs of a shoal server: docs/rest.md"}}},
          {"security", json::array{json::object{{"token", json::array()}}}},
          {"paths", std::move(paths)},
          {"components", std::move(components)}};
}

std::string RightsTable() {
  std::string text =
      "| request | viewer | member | operator | administrator | scope | compared with | purpose |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Route& route : Routes()) {
    text += "| `" + std::string(NameOf(route.method)) + " " + std::string(route.path) + "` |";
    for (const Role role : {Role::kViewer, Role::kMember, Role::kOperator, Role::kAdministrator}) {
      const bool own = route.access == Access::kOwnJob && role == Role::kMember;
      text += own ? " own |" : role >= route.role ? " yes |" : " – |";
    }
    text += " " + (route.scope ? "`" + std::string(NameOf(*route.scope)) + "`" : "–") + " | " +
            std::string(AccessText(route.access)) + " | " + std::string(route.doc) + " |\n";
  }
  return text;
}

}  // namespace shoal::api
