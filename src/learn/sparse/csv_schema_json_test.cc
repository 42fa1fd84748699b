#include "learn/sparse/csv_schema_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::learn::sparse {
namespace {

using ::testing::HasSubstr;

json::object FactsWith(json::value columns) {
  return {{"data", {{"format", "csv"}, {"columns", std::move(columns)}}}};
}

TEST(CsvFacts, EveryNameComesBack) {
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
  for (const std::string& name : {std::string("age"), std::string("\xc3\xa9t\xc3\xa9"), bytes}) {
    const data::CsvSchema schema{true, name, {"a", name, "b"}, {"b"}};
    const auto text = ToText(FactsWith(ToJson(schema)));
    const auto metadata = ParseJsonObject(text);
    ASSERT_TRUE(metadata.ok()) << metadata.status().message();
    const auto read = CsvSchemaFromJson(*metadata);
    ASSERT_TRUE(read.ok() && read->has_value()) << name;
    EXPECT_EQ(**read, schema);
  }
}

TEST(CsvFacts, ScalesComeBack) {
  data::CsvSchema schema{true, "a", {"a", "b", "c"}, {}};
  schema.scales = {{0, 0, data::CsvIndicator::kNone},
                   {1.6e9 + 0.1, 1.0 / 3, data::CsvIndicator::kMissing},
                   {-1e-300, 1e12, data::CsvIndicator::kPresent}};
  schema.row_scale = 0.1f;
  const std::string text = ToText(FactsWith(ToJson(schema)));
  EXPECT_EQ(**CsvSchemaFromJson(*ParseJsonObject(text)), schema);
  for (const auto& [from, to] : {std::pair{"\"missing\"", "\"maybe\""},
                                 {"\"missing\",", ""},
                                 {"\"factor\":[", "\"factor\":[null,"},
                                 {"\"row_scale\":", "\"row_scale\":-"},
                                 {"\"mean\"", "\"means\""}}) {
    std::string damaged = text;
    ASSERT_NE(damaged.find(from), std::string::npos) << from;
    damaged.replace(damaged.find(from), std::string_view(from).size(), to);
    EXPECT_THAT(CsvSchemaFromJson(*ParseJsonObject(damaged)).status().message(),
                HasSubstr("model.json: data.columns: "))
        << to;
  }
}

TEST(CsvFacts, OlderModelsHaveNoneAndDamageIsFound) {
  EXPECT_FALSE(CsvSchemaFromJson({})->has_value());
  EXPECT_FALSE(CsvSchemaFromJson({{"data", {{"format", "csv"}}}})->has_value());
  for (const char* columns : {"[]", "{}", R"({"label":"a","names":"a","categorical":[]})",
                              R"({"label":"a","names":[1],"categorical":[]})",
                              R"({"label":"b","names":["a"],"categorical":[]})"}) {
    EXPECT_THAT(CsvSchemaFromJson(FactsWith(*ParseJson(columns))).status().message(),
                HasSubstr("model.json: data.columns: "));
  }
}

}  // namespace
}  // namespace shoal::learn::sparse
