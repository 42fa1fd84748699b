#include "learn/sparse/csv_schema_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/examples/classes.h"
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

constexpr std::array<std::string_view, 3> kIndicators{"", "missing", "present"};

json::object ScalingJson(const data::CsvSchema& schema) {
  json::array mean;
  json::array factor;
  json::array indicator;
  for (const data::ColumnScale& scale : schema.scales) {
    mean.emplace_back(scale.mean);
    factor.emplace_back(scale.factor);
    indicator.emplace_back(kIndicators[static_cast<size_t>(scale.indicator)]);
  }
  return {{"row_scale", schema.row_scale},
          {"mean", std::move(mean)},
          {"factor", std::move(factor)},
          {"indicator", std::move(indicator)}};
}

const json::array* ArrayIn(const json::object& object, std::string_view field, size_t size) {
  const json::value* const found = object.if_contains(field);
  if (found == nullptr || !found->is_array() || found->as_array().size() != size) return nullptr;
  return &found->as_array();
}

bool NumberIn(const json::value& value, double* number) {
  if (!value.is_number()) return false;
  *number = value.to_number<double>();
  return std::isfinite(*number);
}

Status ScalingFrom(const json::object& columns, data::CsvSchema* schema) {
  const json::value* const found = columns.if_contains("scaling");
  if (found == nullptr) return Status::Ok();
  if (!found->is_object()) return Malformed("scaling is no object");
  const json::object& scaling = found->as_object();
  const size_t size = schema->names.size();
  const json::array* const mean = ArrayIn(scaling, "mean", size);
  const json::array* const factor = ArrayIn(scaling, "factor", size);
  const json::array* const indicator = ArrayIn(scaling, "indicator", size);
  if (mean == nullptr || factor == nullptr || indicator == nullptr)
    return Malformed("scaling has not as many entries as there are names");
  double row_scale = 0;
  const json::value* const whole = scaling.if_contains("row_scale");
  if (whole == nullptr || !NumberIn(*whole, &row_scale) || !(row_scale > 0))
    return Malformed("scaling.row_scale is no positive number");
  schema->row_scale = static_cast<float>(row_scale);
  schema->scales.resize(size);
  for (size_t i = 0; i < size; ++i) {
    data::ColumnScale& scale = schema->scales[i];
    if (!NumberIn((*mean)[i], &scale.mean) || !NumberIn((*factor)[i], &scale.factor))
      return Malformed("a scale is no finite number");
    const auto* const text = (*indicator)[i].if_string();
    const auto known = text == nullptr ? kIndicators.end()
                                       : std::find(kIndicators.begin(), kIndicators.end(),
                                                   std::string_view(*text));
    if (known == kIndicators.end()) return Malformed("an indicator is unknown");
    scale.indicator = static_cast<data::CsvIndicator>(known - kIndicators.begin());
  }
  return Status::Ok();
}

}  // namespace

json::object ToJson(const data::CsvSchema& schema) {
  const bool latin1 = !std::all_of(schema.names.begin(), schema.names.end(), data::IsUtf8) ||
                      !std::all_of(schema.classes.begin(), schema.classes.end(), data::IsUtf8);
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
  if (!schema.classes.empty()) {
    json::array classes;
    for (const std::string& name : schema.classes) classes.emplace_back(text(name));
    columns["classes"] = std::move(classes);
  }
  if (!schema.weight.empty()) columns["weight"] = text(schema.weight);
  if (!schema.key.empty()) columns["key"] = text(schema.key);
  if (!schema.scales.empty()) columns["scaling"] = ScalingJson(schema);
  return columns;
}

Result<std::optional<data::CsvSchema>> CsvSchemaFromJson(const json::object& metadata) {
  const json::object* const data = FindObject(metadata, "data");
  const json::value* const found = data == nullptr ? nullptr : data->if_contains("columns");
  if (found == nullptr) return std::optional<data::CsvSchema>();
  if (!found->is_object()) return Malformed("expected an object");
  const json::object& columns = found->as_object();
  const bool latin1 = GetStringOr(columns, "encoding", "") == kLatin1;
  data::CsvSchema schema;
  schema.header = GetBoolOr(columns, "header", false);
  const std::string label = GetStringOr(columns, "label", "");
  schema.label = latin1 ? ToLatin1(label) : label;
  for (const auto& [field, to] : {std::pair{"weight", &schema.weight}, {"key", &schema.key}}) {
    const std::string name = GetStringOr(columns, field, "");
    *to = latin1 ? ToLatin1(name) : name;
  }
  TRY_ASSIGN(schema.names, NamesIn(columns, "names", latin1));
  TRY_ASSIGN(schema.categorical, NamesIn(columns, "categorical", latin1));
  if (schema.names.size() > data::kMaxCsvColumns) return Malformed("too many names");
  if (columns.contains("classes")) {
    TRY_ASSIGN(schema.classes, NamesIn(columns, "classes", latin1));
    if (schema.classes.size() < 2 || schema.classes.size() > data::kMaxClasses)
      return Malformed("classes are not two or more");
  }
  if (std::find(schema.names.begin(), schema.names.end(), schema.label) == schema.names.end())
    return Malformed("the label is none of the names");
  TRY(ScalingFrom(columns, &schema));
  return std::optional<data::CsvSchema>(std::move(schema));
}

}  // namespace shoal::learn::sparse
