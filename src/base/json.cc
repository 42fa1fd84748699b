#include "base/json.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>
#include <cmath>

namespace shoal {
namespace {

void Indent(std::string* out, int depth) { out->append(static_cast<size_t>(2 * depth), ' '); }

void Pretty(const json::value& value, int depth, std::string* out) {
  if (value.is_object() && !value.get_object().empty()) {
    *out += "{\n";
    bool first = true;
    for (const auto& [key, item] : value.get_object()) {
      if (!first) *out += ",\n";
      first = false;
      Indent(out, depth + 1);
      *out += json::serialize(json::string(key)) + ": ";
      Pretty(item, depth + 1, out);
    }
    *out += "\n";
    Indent(out, depth);
    *out += "}";
  } else if (value.is_array() && !value.get_array().empty()) {
    *out += "[\n";
    bool first = true;
    for (const json::value& item : value.get_array()) {
      if (!first) *out += ",\n";
      first = false;
      Indent(out, depth + 1);
      Pretty(item, depth + 1, out);
    }
    *out += "\n";
    Indent(out, depth);
    *out += "]";
  } else {
    *out += json::serialize(value);
  }
}

Status Wrong(std::string_view field, std::string_view expected) {
  return InvalidArgument("field '" + std::string(field) + "': expected " + std::string(expected));
}

}  // namespace

Result<json::value> ParseJson(std::string_view text) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 64;
  json::stream_parser parser({}, options);
  const size_t used = parser.write_some(text.data(), text.size(), error);
  if (!error && used == text.size()) parser.finish(error);
  if (error)
    return InvalidArgument("bad JSON near byte " + std::to_string(used) + ": " + error.message());
  if (used != text.size())
    return InvalidArgument("bytes after the JSON value, at byte " + std::to_string(used));
  return parser.release();
}

Result<json::object> ParseJsonObject(std::string_view text) {
  TRY_ASSIGN(json::value value, ParseJson(text));
  if (!value.is_object()) return InvalidArgument("expected a JSON object");
  return std::move(value.get_object());
}

std::string ToText(const json::value& value) { return json::serialize(value); }

std::string ToPrettyText(const json::value& value) {
  std::string out;
  Pretty(value, 0, &out);
  return out;
}

Result<std::string> GetString(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_string()) return Wrong(field, "a string");
  return std::string(value->get_string());
}

Result<int64_t> GetInt(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr) return Wrong(field, "an integer");
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64() && value->get_uint64() <= INT64_MAX)
    return static_cast<int64_t>(value->get_uint64());
  return Wrong(field, "an integer");
}

Result<double> GetDouble(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_number()) return Wrong(field, "a number");
  if (value->is_int64()) return static_cast<double>(value->get_int64());
  if (value->is_uint64()) return static_cast<double>(value->get_uint64());
  return value->get_double();
}

Result<bool> GetBool(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_bool()) return Wrong(field, "true or false");
  return value->get_bool();
}

const json::object* FindObject(const json::object& object, std::string_view field) {
  const json::value* const found = object.if_contains(field);
  return found == nullptr ? nullptr : found->if_object();
}

std::string GetStringOr(const json::object& object, std::string_view field,
                        std::string_view other) {
  return GetString(object, field).value_or(std::string(other));
}
int64_t GetIntOr(const json::object& object, std::string_view field, int64_t other) {
  return GetInt(object, field).value_or(other);
}
double GetDoubleOr(const json::object& object, std::string_view field, double other) {
  return GetDouble(object, field).value_or(other);
}
bool GetBoolOr(const json::object& object, std::string_view field, bool other) {
  return GetBool(object, field).value_or(other);
}

}  // namespace shoal
