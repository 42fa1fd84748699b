#include "learn/sparse/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "data/corpus/corpus.h"
#include "data/examples/csv.h"
#include "data/examples/examples.h"
#include "data/examples/table.h"
#include "learn/sparse/csv_schema_json.h"
#include "learn/sparse/objective/label_scale.h"
#include "learn/sparse/params.h"

namespace shoal::learn::sparse {
namespace {

constexpr size_t kMaxNames = 1u << 20;
constexpr size_t kMaxNameLength = 200;

// Names of the features of a table.
class ColumnNames {
 public:
  ColumnNames(const model::FactorModel& model, const data::CsvSchema& schema)
      : model_(model), schema_(schema) {
    for (size_t i = 0; i < schema.names.size(); ++i) {
      if (schema.names[i] == schema.label) continue;
      AddColumn(schema.names[i], schema.scales.empty() ? nullptr : &schema.scales[i]);
    }
  }

  // The classes in the first bytes of the file.
  Status AddClasses(const std::string& file, data::ExampleFormat format, char delimiter,
                    uint64_t* bytes_left) {
    TRY_ASSIGN(const data::Corpus corpus, OpenExamples({file}, format));
    const uint64_t bytes = *bytes_left;
    *bytes_left -= std::min(bytes, corpus.stored_bytes());
    data::CsvOptions csv;
    csv.delimiter = delimiter;
    csv.label_needed = false;
    csv.trained = schema_;
    data::ExampleOptions options;
    options.format = format;
    options.max_bad = 1;
    TRY_ASSIGN(options.csv, data::FindColumns(format, corpus, csv));
    return data::VisitRows(corpus, options, bytes, [&](const data::TableRow& row) {
      AddRow(*options.csv, row);
      return names_.size() < kMaxNames;
    });
  }

  const FeatureEffect* Find(uint32_t feature) const {
    const auto found = names_.find(feature);
    return found == names_.end() ? nullptr : &found->second;
  }

 private:
  void Add(uint64_t hash, const FeatureEffect& effect) {
    const uint32_t feature =
        data::HashFeature(hash, static_cast<int>(std::max(1u, model_.linear.hash_bits)));
    if (feature >= model_.linear.features()) return;
    const uint64_t classes = model_.linear.classes();
    const float* const weights = model_.linear.weights.data() + feature * classes;
    const bool any = std::any_of(weights, weights + classes, [](float w) { return w != 0; });
    if (any) names_.try_emplace(feature, effect);
  }

  void AddColumn(const std::string& name, const data::ColumnScale* scale) {
    const uint64_t hash = data::HashBytes(name);
    FeatureEffect number{.name = name};
    if (scale != nullptr && scale->factor > 0) {
      number.scaled = true;
      number.mean = scale->mean;
      number.deviation = 1 / scale->factor;
    }
    Add(hash, number);
    if (scale == nullptr || scale->indicator == data::CsvIndicator::kNone) return;
    const bool missing = scale->indicator == data::CsvIndicator::kMissing;
    Add(data::HashBytes("=", hash),
        FeatureEffect{.name = name + (missing ? " is missing" : " is given")});
  }

  void AddRow(const data::CsvColumns& columns, const data::TableRow& row) {
    for (size_t column = 0; column < row.cells.size(); ++column)
      AddCell(columns, column, row.cells[column]);
    for (const data::ListEntry& entry : row.entries) AddCell(columns, entry.column, entry.cell);
  }

  void AddCell(const data::CsvColumns& columns, size_t column, const data::TableCell& cell) {
    const std::string_view text = data::TextOf(cell, &room_);
    if (column == columns.label || text.empty() || text.size() > kMaxNameLength) return;
    const bool named =
        columns.columns[column].categorical || cell.kind == data::TableCell::Kind::kText;
    double number = 0;
    if (!named && data::ParseWideNumber(text, &number)) return;
    const uint64_t hash = data::HashBytes("=", columns.columns[column].feature);
    Add(data::HashBytes(text, hash),
        FeatureEffect{.name = columns.schema.names[column] + "=" + std::string(text)});
  }

  const model::FactorModel& model_;
  const data::CsvSchema& schema_;
  std::unordered_map<uint32_t, FeatureEffect> names_;
  std::string room_;
};

char DelimiterIn(const json::object& metadata) {
  const json::object* const parameters = FindObject(metadata, "parameters");
  return DelimiterOf(parameters == nullptr ? "" : GetStringOr(*parameters, "delimiter", ""));
}

}  // namespace

Result<ModelDescription> DescribeModel(const model::FactorModel& model,
                                       const json::object& metadata,
                                       const DescribeOptions& options) {
  TRY_ASSIGN(const std::optional<data::CsvSchema> schema, CsvSchemaFromJson(metadata));
  std::optional<ColumnNames> names;
  if (schema) {
    names.emplace(model, *schema);
    const json::object* const data = FindObject(metadata, "data");
    const auto format = FormatOf(data == nullptr ? "csv" : GetStringOr(*data, "format", "csv"));
    uint64_t left = options.text_limit;
    for (const std::string& file : options.files) {
      if (!format.ok() || left == 0) break;
      (void)names->AddClasses(file, *format, DelimiterIn(metadata), &left);  // a convenience
    }
  }
  TRY_ASSIGN(const Target target, TargetFromJson(metadata));
  ModelDescription description;
  const uint64_t classes = model.linear.classes();
  // Of numbers effects are told in the label's unit.
  const bool in_unit = target.loss.predicts_numbers() && target.loss.kind != LossKind::kPoisson;
  const double unit = in_unit ? target.scale.deviation : 1;
  description.bias =
      unit * static_cast<double>(model.linear.bias) + (in_unit ? target.scale.mean : 0);
  if (classes > 1)
    description.classes = schema && !schema->classes.empty() ? schema->classes : target.classes;
  if (classes > 1 && description.classes.size() != classes)
    return DataLoss("model.json does not name the classes of weights.bin");
  const model::ZeroedFloats& weights = model.linear.weights;
  std::vector<uint64_t> places;
  for (uint64_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    ++description.nonzero;
    const bool named = !names || names->Find(static_cast<uint32_t>(i / classes)) != nullptr;
    description.unnamed += !named;
    if (named) places.push_back(i);
  }
  const size_t kept = std::min(options.limit, places.size());
  std::partial_sort(
      places.begin(), places.begin() + static_cast<std::ptrdiff_t>(kept), places.end(),
      [&](uint64_t a, uint64_t b) { return std::abs(weights[a]) > std::abs(weights[b]); });
  const double row_scale = schema ? static_cast<double>(schema->row_scale) : 1;
  for (size_t i = 0; i < kept; ++i) {
    const uint64_t feature = places[i] / classes;
    FeatureEffect effect = names ? *names->Find(static_cast<uint32_t>(feature))
                                 : FeatureEffect{.name = std::to_string(feature)};
    effect.weight = unit * row_scale * static_cast<double>(weights[places[i]]);
    if (effect.scaled) effect.per_unit = effect.weight / effect.deviation;
    if (classes > 1) effect.class_name = description.classes[places[i] % classes];
    description.effects.push_back(std::move(effect));
  }
  return description;
}

}  // namespace shoal::learn::sparse
