// The definition of ShoalJob: what an API server demands of it, and the file that is made from it.
#include "api/operator/crd.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/file.h"
#include "job/file/resource_schema.h"

namespace shoal::api {
namespace {

const std::string kDefinitionFile =
    std::string(SHOAL_SOURCE_DIR) + "/deploy/helm/shoal-server/files/shoaljob.yaml";

// The rules of structural schemas (apiextensions.k8s.io/v1) that our schema could break. Returns
// the number of values.
int CheckStructural(const json::object& schema, const std::string& path) {
  const bool any = schema.contains("x-kubernetes-preserve-unknown-fields") ||
                   schema.contains("x-kubernetes-int-or-string");
  EXPECT_TRUE(schema.contains("type") || any) << path;
  if (const json::value* const type = schema.if_contains("type"); type != nullptr) {
    EXPECT_TRUE(type->is_string()) << path;
  }
  EXPECT_FALSE(schema.contains("properties") && schema.contains("additionalProperties")) << path;
  for (const char* const word : {"anyOf", "propertyNames", "$schema", "title", "const"})
    EXPECT_FALSE(schema.contains(word)) << path << ": " << word;
  int values = 1;
  if (const json::object* const fields = FindObject(schema, "properties"))
    for (const auto& field : *fields)
      values += CheckStructural(field.value().as_object(), path + "." + std::string(field.key()));
  if (const json::object* const items = FindObject(schema, "items"))
    values += CheckStructural(*items, path + "[]");
  if (const json::object* const more = FindObject(schema, "additionalProperties"))
    values += CheckStructural(*more, path + ".*");
  return values;
}

const json::object& SchemaOf(const json::object& definition) {
  return definition.at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema").as_object();
}

TEST(ShoalJobDefinitionTest, IsStructural) {
  EXPECT_GT(CheckStructural(SchemaOf(ShoalJobDefinition()), ""), 300);
}

TEST(ShoalJobDefinitionTest, HasTheFieldsOfTheJobFileInTheirLongForm) {
  const json::object definition = ShoalJobDefinition();
  const json::value job =
      SchemaOf(definition).at("properties").at("spec").at("properties").at("job");
  const json::value role = job.at("properties").at("roles").at("additionalProperties");
  EXPECT_EQ(role.at("properties").at("replicas").at("type"), "integer");
  EXPECT_EQ(role.at("properties").at("replicas").at("maximum"), 100000);
  EXPECT_EQ(role.at("properties").at("command").at("type"), "array");
  EXPECT_EQ(job.at("properties").at("framework").at("type"), "string");
  EXPECT_TRUE(role.at("properties")
                  .at("resources")
                  .at("properties")
                  .at("memory")
                  .as_object()
                  .contains("x-kubernetes-int-or-string"));
  EXPECT_FALSE(job.at("properties").at("learn").as_object().contains("properties"));
  EXPECT_NE(ToText(job).find("podAntiAffinity"), std::string::npos);
}

TEST(ShoalJobDefinitionTest, KeepsObjectsWhenTheChartIsRemoved) {
  EXPECT_EQ(ShoalJobDefinition().at("metadata").at("annotations").at("helm.sh/resource-policy"),
            "keep");
}

TEST(ShoalJobDefinitionTest, TheChartsFileIsMadeFromIt) {
  const std::string text = ShoalJobDefinitionText();
  if (std::getenv("SHOAL_REGENERATE") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(kDefinitionFile, text).ok());
    return;
  }
  const auto there = ReadFile(kDefinitionFile, size_t{4} << 20);
  ASSERT_TRUE(there.ok()) << there.status().message();
  EXPECT_EQ(*there, text) << kDefinitionFile << " differs; SHOAL_REGENERATE=1 api_test writes it";
}

TEST(StructuralSchemaTest, TakesTheLongFormOfShorthands) {
  const auto structural = [](const char* text) {
    return ToText(job::StructuralSchema(ParseJsonObject(text).value()));
  };
  // A text or a list of texts: the list.
  EXPECT_EQ(structural(R"({"anyOf":[{"type":["string","number"]},
                          {"type":"array","items":{"type":["string","number"]},"minItems":1}]})"),
            R"({"type":"array","items":{"type":"string"},"minItems":1})");
  // A section or its most important field: the section.
  EXPECT_EQ(
      structural(R"({"anyOf":[{"type":["object","null"],"properties":{}},{"type":"integer"}]})"),
      R"({"type":"object","properties":{}})");
  // A text or an object that is no section: any value.
  EXPECT_EQ(structural(R"({"anyOf":[{"type":"string"},{"type":"object","properties":{}}]})"),
            R"({"x-kubernetes-preserve-unknown-fields":true})");
  EXPECT_EQ(structural(R"({"type":["string","integer"],"pattern":"^a$"})"),
            R"({"x-kubernetes-int-or-string":true,"pattern":"^a$"})");
  EXPECT_EQ(structural(R"({"enum":["a","b"],"description":"x"})"),
            R"({"type":"string","enum":["a","b"],"description":"x"})");
}

}  // namespace
}  // namespace shoal::api
