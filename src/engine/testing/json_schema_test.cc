#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "engine/testing/test_json_schema.h"

namespace shoal::engine {
namespace {

bool Fits(const json::object& schema, const json::value& value) {
  const std::string type = GetStringOr(schema, "type", "");
  const bool integer = value.is_int64() || value.is_uint64();
  if (schema.contains("oneOf") || GetStringOr(schema, "format", "") == "int-or-string")
    return value.is_string() || integer;
  return type.empty() || (type == "string" && value.is_string()) ||
         (type == "integer" && integer) || (type == "boolean" && value.is_bool()) ||
         (type == "number" && value.is_number()) || (type == "array" && value.is_array()) ||
         (type == "object" && value.is_object());
}

class SchemaComparison {
 public:
  explicit SchemaComparison(const json::object& definitions) : definitions_(definitions) {}

  std::string DescribeDifference(const json::value& value, const json::object& given,
                                 const std::string& where) const {
    const std::string ref = GetStringOr(given, "$ref", "");
    if (!ref.empty() && !definitions_.contains(ref))
      return where + ": there is no definition " + ref;
    const json::object& schema = ref.empty() ? given : definitions_.at(ref).as_object();
    if (!Fits(schema, value))
      return where + ": expected " + GetStringOr(schema, "type", "?") + ", got " + ToText(value);
    if (const json::value* choices = schema.if_contains("enum"); choices != nullptr) {
      const auto& list = choices->as_array();
      if (std::find(list.begin(), list.end(), value) == list.end())
        return where + ": got " + ToText(value) + ", which is none of " + ToText(*choices);
    }
    if (value.is_array() && schema.contains("items")) {
      for (const json::value& item : value.get_array()) {
        const std::string wrong =
            DescribeDifference(item, schema.at("items").as_object(), where + "[]");
        if (!wrong.empty()) return wrong;
      }
    }
    return value.is_object() ? Members(value.get_object(), schema, where) : "";
  }

 private:
  std::string Members(const json::object& value, const json::object& schema,
                      const std::string& where) const {
    if (const json::value* required = schema.if_contains("required"); required != nullptr) {
      for (const json::value& name : required->as_array()) {
        if (!value.contains(name.as_string())) return where + ": " + ToText(name) + " is required";
      }
    }
    const json::value* properties = schema.if_contains("properties");
    const json::value* others = schema.if_contains("additionalProperties");
    for (const auto& [name, member] : value) {
      const json::value* known =
          properties == nullptr ? nullptr : properties->as_object().if_contains(name);
      if (known == nullptr) known = others;
      if (known == nullptr && properties == nullptr) continue;
      if (known == nullptr) return where + "." + std::string(name) + " is not in the definition";
      const std::string wrong =
          DescribeDifference(member, known->as_object(), where + "." + std::string(name));
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  const json::object& definitions_;
};

}  // namespace

json::object ReadGolden(const std::string& name) {
  const auto text = ReadFile(std::string(SHOAL_SOURCE_DIR) + "/tests/golden/" + name, 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? ParseJsonObject(*text).value_or({}) : json::object();
}

std::string DescribeDifference(const json::value& value, const json::object& schema,
                               const std::string& where, const json::object& definitions) {
  return SchemaComparison(definitions).DescribeDifference(value, schema, where);
}

namespace {

TEST(Schema, FindsEachWayToBeWrong) {
  const json::object schema = *ParseJsonObject(R"({"type": "object", "required": ["a"],
      "properties": {"a": {"type": "string", "enum": ["x", "y"]},
                     "b": {"type": "array", "items": {"$ref": "number"}}}})");
  const json::object definitions = *ParseJsonObject(R"({"number": {"type": "integer"}})");
  const auto wrong = [&](const char* text) {
    return DescribeDifference(*ParseJson(text), schema, "body", definitions);
  };
  EXPECT_EQ(wrong(R"({"a": "x", "b": [1, 2]})"), "");
  EXPECT_EQ(wrong(R"({"b": []})"), "body: \"a\" is required");
  EXPECT_EQ(wrong(R"({"a": 1})"), "body.a: expected string, got 1");
  EXPECT_EQ(wrong(R"({"a": "z"})"), R"(body.a: got "z", which is none of ["x","y"])");
  EXPECT_EQ(wrong(R"({"a": "x", "b": [1, "2"]})"), R"(body.b[]: expected integer, got "2")");
  EXPECT_EQ(wrong(R"({"a": "x", "c": 1})"), "body.c is not in the definition");
  EXPECT_EQ(wrong("[]"), "body: expected object, got []");
}

}  // namespace
}  // namespace shoal::engine
