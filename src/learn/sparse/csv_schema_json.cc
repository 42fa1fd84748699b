#include "learn/sparse/csv_schema_json.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/text/tokenizer.h"

namespace shoal::learn::sparse {
namespace {

constexpr const char* kLatin1 = "latin-1";

// Each byte as the character of that number.
std::string FromLatin1(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) text += static_cast<char>(0xc0 | byte >> 6);
    text += static_cast<char>(byte >= 0x80 ? (0x80 | (byte & 0x3f)) : byte);
  }
  return text;
}

std::string ToLatin1(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const bool two = lead >= 0x80 && i + 1 < text.size();
    bytes += two ? static_cast<char>(lead << 6 | (text[++i] & 0x3f)) : static_cast<char>(lead);
  }
  return bytes;
}

Status Malformed(std::string_view what) {
  return DataLoss("model.json: data.columns: " + std::string(what));
}

Result<std::vector<std::string>> NamesIn(const json::object& columns, std::string_view field,
                                         bool latin1) {
  const json::value* const found = columns.if_contains(field);
  if (found == nullptr || !found->is_array()) return Malformed(std::string(field) + " is no list");
  std::vector<std::string> names;
  for (const json::value& name : found->as_array()) {
    if (!name.is_string()) return Malformed("a name is no text");
    const std::string_view text = name.as_string();
    names.push_back(latin1 ? ToLatin1(text) : std::string(text));
  }
  return names;
}

}  // namespace

json::object ToJson(const data::CsvSchema& schema) {
  const bool latin1 = !std::all_of(schema.names.begin(), schema.names.end(), data::IsUtf8);
  const auto text = [&](const std::string& name) { return latin1 ? FromLatin1(name) : name; };
  json::array names;
  for (const std::string& name : schema.names) names.emplace_back(text(name));
  json::array categorical;
  for (const std::string& name : schema.categorical) categorical.emplace_back(text(name));
  json::object columns{{"header", schema.header},
                       {"label", text(schema.label)},
                       {"names", std::move(names)},
                       {"categorical", std::move(categorical)}};
  if (latin1) columns["encoding"] = kLatin1;
  return columns;
}

Result<std::optional<data::CsvSchema>> CsvSchemaFromJson(const json::object& metadata) {
  const json::value* const data = metadata.if_contains("data");
  const json::value* const found =
      data != nullptr && data->is_object() ? data->as_object().if_contains("columns") : nullptr;
  if (found == nullptr) return std::optional<data::CsvSchema>();
  if (!found->is_object()) return Malformed("expected an object");
  const json::object& columns = found->as_object();
  const bool latin1 = GetStringOr(columns, "encoding", "") == kLatin1;
  data::CsvSchema schema;
  schema.header = GetBoolOr(columns, "header", false);
  const std::string label = GetStringOr(columns, "label", "");
  schema.label = latin1 ? ToLatin1(label) : label;
  TRY_ASSIGN(schema.names, NamesIn(columns, "names", latin1));
  TRY_ASSIGN(schema.categorical, NamesIn(columns, "categorical", latin1));
  if (schema.names.size() > data::kMaxCsvColumns) return Malformed("too many names");
  if (std::find(schema.names.begin(), schema.names.end(), schema.label) == schema.names.end())
    return Malformed("the label is none of the names");
  return std::optional<data::CsvSchema>(std::move(schema));
}

}  // namespace shoal::learn::sparse
