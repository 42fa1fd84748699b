// Typed and bounded access to the fields of a JSON object, for json.cc and its parts.
// InvalidArgument names the field and the expected value.
#pragma once

#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "job/spec/enum_names.h"

namespace shoal::job {

inline Status Wrong(std::string_view field, std::string_view expected) {
  return InvalidArgument("field '" + std::string(field) + "': expected " + std::string(expected));
}

inline Result<const json::object*> GetObject(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_object()) return Wrong(field, "an object");
  return &value->get_object();
}

inline Result<const json::array*> GetArray(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_array()) return Wrong(field, "an array");
  return &value->get_array();
}

inline Status GetTexts(const json::object& object, std::string_view field,
                       std::vector<std::string>* out) {
  TRY_ASSIGN(const json::array* array, GetArray(object, field));
  for (const json::value& item : *array) {
    if (!item.is_string()) return Wrong(field, "an array of strings");
    out->emplace_back(item.get_string());
  }
  return Status::Ok();
}

inline Status GetTextMap(const json::object& object, std::string_view field,
                         std::map<std::string, std::string>* out) {
  TRY_ASSIGN(const json::object* map, GetObject(object, field));
  for (const auto& [key, item] : *map) {
    if (!item.is_string()) return Wrong(field, "an object of strings");
    out->emplace(std::string(key), std::string(item.get_string()));
  }
  return Status::Ok();
}

template <typename Integer>
Status GetIn(const json::object& object, std::string_view field, int64_t least, int64_t most,
             Integer* out) {
  TRY_ASSIGN(const int64_t value, GetInt(object, field));
  if (value < least || value > most) {
    return Wrong(field, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  *out = static_cast<Integer>(value);
  return Status::Ok();
}

// An integer from 0 to `most`, or nothing if the field is missing.
inline Status GetOptional(const json::object& object, std::string_view field, int most,
                          std::optional<int>* out) {
  if (!object.contains(field)) return Status::Ok();
  int value = 0;
  TRY(GetIn(object, field, 0, most, &value));
  *out = value;
  return Status::Ok();
}

inline Status GetMs(const json::object& object, std::string_view field,
                    std::chrono::milliseconds* out) {
  int64_t ms = 0;
  // At most a thousand years. Nanoseconds overflow after 292 years, so callers sum milliseconds.
  TRY(GetIn(object, field, 0, int64_t{1000} * 366 * 86'400'000, &ms));
  *out = std::chrono::milliseconds(ms);
  return Status::Ok();
}

template <typename Enum, size_t n>
Status GetEnum(const json::object& object, std::string_view field,
               const NameEntry<Enum> (&table)[n], Enum* out) {
  TRY_ASSIGN(const std::string name, GetString(object, field));
  const auto value = ValueOfName(table, name);
  if (!value) return Wrong(field, "a known name, got '" + name.substr(0, 40) + "'");
  *out = *value;
  return Status::Ok();
}

inline constexpr int64_t kInt = std::numeric_limits<int>::max();

}  // namespace shoal::job
