// JSON (Boost.JSON) with bounds for what comes from outside, and reads that name the field that is
// wrong.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal {

namespace json = boost::json;

// Parses one value; at most 64 levels deep. InvalidArgument with the byte offset on bad syntax or
// trailing bytes.
Result<json::value> ParseJson(std::string_view text);
// Parses one value that must be an object.
Result<json::object> ParseJsonObject(std::string_view text);
std::string ToText(const json::value& value);
// With line breaks and two spaces of indentation, for people.
std::string ToPrettyText(const json::value& value);

// Reads of a field; InvalidArgument names it if it is missing or of another type.
Result<std::string> GetString(const json::object& object, std::string_view field);
Result<int64_t> GetInt(const json::object& object, std::string_view field);
Result<double> GetDouble(const json::object& object, std::string_view field);
Result<bool> GetBool(const json::object& object, std::string_view field);
// Likewise with a value for a missing field; a field of the wrong type also gives it.
std::string GetStringOr(const json::object& object, std::string_view field, std::string_view other);
int64_t GetIntOr(const json::object& object, std::string_view field, int64_t other);
double GetDoubleOr(const json::object& object, std::string_view field, double other);
bool GetBoolOr(const json::object& object, std::string_view field, bool other);
// The object in a field; null if the field is missing or of another type. Points into `object`.
const json::object* FindObject(const json::object& object, std::string_view field);

}  // namespace shoal
