#include "learn/sparse/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "data/corpus/corpus.h"
#include "data/examples/csv.h"
#include "data/examples/examples.h"
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
  Status AddClasses(const std::string& file, char delimiter, uint64_t* bytes_left) {
    TRY_ASSIGN(const data::Corpus corpus, data::Corpus::Open({file}));
    data::CsvOptions options;
    options.delimiter = delimiter;
    options.label_needed = false;
    options.trained = schema_;
    TRY_ASSIGN(const auto columns, data::CsvColumns::Make(corpus, options));
    TRY_ASSIGN(const auto stream, data::TextStream::Open(corpus.files().front()));
    std::string text;
    std::string part(1 << 20, '\0');
    while (*bytes_left > 0 && names_.size() < kMaxNames) {
      TRY_ASSIGN(const size_t got, stream->Read(part.data(), part.size()));
      if (got == 0) break;
      *bytes_left -= std::min<uint64_t>(*bytes_left, got);
      text.append(part, 0, got);
      size_t begin = 0;
      for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
        AddLine(*columns, std::string_view(text).substr(begin, end - begin));
      text.erase(0, begin);
    }
    AddLine(*columns, text);
    return Status::Ok();
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

  void AddLine(const data::CsvColumns& columns, std::string_view line) {
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line == columns.header) return;
    const char* const end = line.data() + line.size();
    size_t column = 0;
    for (const char* at = line.data(); at <= end && column < columns.columns.size(); ++column) {
      std::string_view cell;
      if (!data::NextCell(&at, end, columns.delimiter, &room_, &cell)) return;
      if (column == columns.label || cell.empty() || cell.size() > kMaxNameLength) continue;
      double number = 0;
      if (!columns.columns[column].categorical && data::ParseWideNumber(cell, &number)) continue;
      if (names_.size() >= kMaxNames) return;
      const uint64_t hash = data::HashBytes("=", columns.columns[column].feature);
      Add(data::HashBytes(cell, hash),
          FeatureEffect{.name = columns.schema.names[column] + "=" + std::string(cell)});
    }
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
    uint64_t left = options.text_limit;
    for (const std::string& file : options.files) {
      if (left == 0) break;
      (void)names->AddClasses(file, DelimiterIn(metadata), &left);  // names are a convenience
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
