#include "job/file/resource_schema.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "job/file/reference_page.h"

namespace shoal::job {
namespace {

constexpr const char* kAnyValue = "x-kubernetes-preserve-unknown-fields";
constexpr const char* kIntOrText = "x-kubernetes-int-or-string";

std::set<std::string> TypesOf(const json::object& schema) {
  std::set<std::string> types;
  const json::value* const type = schema.if_contains("type");
  if (type == nullptr) return types;
  if (type->is_string()) types.insert(std::string(type->get_string()));
  if (type->is_array())
    for (const json::value& one : type->get_array()) types.insert(std::string(one.as_string()));
  return types;
}

// A section of the file: it may be empty there, unlike other objects.
bool IsSection(const json::object& schema) {
  const std::set<std::string> types = TypesOf(schema);
  return types.contains("object") && types.contains("null");
}

json::object AnyValue() { return {{kAnyValue, true}}; }

void CopyIfPresent(const json::object& from, std::string_view field, json::object* to) {
  if (const json::value* const value = from.if_contains(field); value != nullptr)
    (*to)[field] = *value;
}

// One of the alternatives, or any value.
json::object OneOf(const json::array& alternatives) {
  const json::object* list = nullptr;
  bool plain = true;  // the others are scalars
  for (const json::value& one : alternatives) {
    const json::object& schema = one.as_object();
    if (IsSection(schema)) return StructuralSchema(schema);
    const std::set<std::string> types = TypesOf(schema);
    if (types.contains("array")) {
      list = &schema;
    } else {
      plain = plain && !types.contains("object") && !types.empty();
    }
  }
  return list != nullptr && plain ? StructuralSchema(*list) : AnyValue();
}

json::object ObjectSchema(const json::object& schema) {
  json::object made{{"type", "object"}};
  const json::value* const more = schema.if_contains("additionalProperties");
  const bool named = more != nullptr && more->is_object();
  if (const json::value* const fields = schema.if_contains("properties"); fields != nullptr) {
    json::object properties;
    for (const auto& field : fields->as_object())
      properties[field.key()] = StructuralSchema(field.value().as_object());
    made["properties"] = std::move(properties);
    if (named) made[kAnyValue] = true;  // both together are not allowed
  } else if (named) {
    made["additionalProperties"] = StructuralSchema(more->as_object());
  }
  CopyIfPresent(schema, "required", &made);
  return made;
}

json::object ScalarSchema(const json::object& schema, const std::set<std::string>& types) {
  json::object made;
  const bool text = types.contains("string");
  if (text && types.contains("integer")) {
    made[kIntOrText] = true;
  } else if (text || schema.contains("enum")) {
    made["type"] = "string";
  } else {
    made["type"] = types.empty() ? "string" : *types.begin();
  }
  for (const char* const bound : {"minimum", "maximum", "pattern", "maxLength", "enum"})
    CopyIfPresent(schema, bound, &made);
  return made;
}

json::object WithoutDescription(const json::object& schema) {
  const json::value* const either = schema.if_contains("anyOf");
  if (either != nullptr) return OneOf(either->as_array());
  std::set<std::string> types = TypesOf(schema);
  types.erase("null");
  if (types.contains("object")) return ObjectSchema(schema);
  if (types.contains("array")) {
    json::object made{{"type", "array"},
                      {"items", StructuralSchema(schema.at("items").as_object())}};
    CopyIfPresent(schema, "minItems", &made);
    CopyIfPresent(schema, "maxItems", &made);
    return made;
  }
  return ScalarSchema(schema, types);
}

// Parameters are numbers or texts, as the algorithm wants them.
void LoosenNamed(std::string_view section, json::object* properties) {
  json::object& schema = (*properties)[section].as_object();
  const json::value description = schema.at("description");
  schema = {{"type", "object"}, {kAnyValue, true}, {"description", description}};
}

}  // namespace

json::object StructuralSchema(const json::object& schema) {
  json::object made = WithoutDescription(schema);
  CopyIfPresent(schema, "description", &made);
  return made;
}

json::object ResourceSchema() {
  json::object schema = StructuralSchema(JobSchema());
  json::object& properties = schema.at("properties").as_object();
  for (const char* const section : {"learn", "matrix"}) LoosenNamed(section, &properties);
  LoosenNamed("parameters", &properties.at("sweep").at("properties").as_object());
  return schema;
}

}  // namespace shoal::job
