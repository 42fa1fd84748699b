#include "learn/sparse/prediction/model_reading.h"

#include <memory>
#include <utility>

#include "learn/sparse/csv_schema_json.h"

namespace shoal::learn::sparse {
namespace {

// How the training data was read, as model.json has it.
CommonParams ParamsOf(const json::object& metadata) {
  CommonParams params;
  params.normalize = "none";  // the schema has the columns' scales, if any
  const json::object* const given = FindObject(metadata, "parameters");
  if (given == nullptr) return params;
  params.label = GetStringOr(*given, "label", "");
  params.categorical = GetStringOr(*given, "categorical", "");
  params.delimiter = GetStringOr(*given, "delimiter", params.delimiter);
  params.header = GetStringOr(*given, "header", params.header);
  return params;
}

std::string FormatIn(const json::object& metadata) {
  const json::object* const data = FindObject(metadata, "data");
  return data == nullptr ? "libsvm" : GetStringOr(*data, "format", "libsvm");
}

}  // namespace

Result<ModelReading> ReadingOf(const model::FactorModel& model, const json::object& metadata) {
  ModelReading reading;
  CommonParams& params = reading.params;
  params = ParamsOf(metadata);
  TRY_ASSIGN(reading.format, FormatOf(FormatIn(metadata)));
  TRY_ASSIGN(params.trained, CsvSchemaFromJson(metadata));
  params.hash_bits = model.linear.hash_bits;
  params.keep_fields = model.fields > 0;
  params.fields = model.folds_fields ? model.fields : 0;
  TRY_ASSIGN(reading.target, TargetFromJson(metadata));
  const Target& target = reading.target;
  params.loss = NameOf(target.loss.kind);
  const size_t classes = model.linear.classes();
  reading.classes =
      params.trained && !params.trained->classes.empty() ? params.trained->classes : target.classes;
  const bool several = target.loss.kind == LossKind::kSoftmax;
  if (several != (classes > 1) || (several && reading.classes.size() != classes))
    return DataLoss("model.json does not name the classes of weights.bin");
  if (!several && reading.classes.size() == 2) reading.positive = reading.classes[1];
  return reading;
}

Result<data::ExampleOptions> RowOptionsOf(const ModelReading& reading) {
  TRY_ASSIGN(data::ExampleOptions options, BareOptionsOf(reading.params, reading.format, false));
  if (!data::IsTable(reading.format)) return options;
  if (!reading.params.trained) {
    return InvalidArgument(
        "model.json does not say what the columns of the training data were, so rows cannot be "
        "read; train the model again with this release");
  }
  data::CsvOptions csv = CsvOptionsOf(reading.params, false);
  csv.keep_keys = false;
  TRY_ASSIGN(const auto columns, data::CsvColumns::FromNames(reading.params.trained->names, csv));
  auto rows = std::make_shared<data::CsvColumns>(*columns);
  if (rows->label != data::CsvColumns::kNone) rows->columns[rows->label].ignored = true;
  rows->label = data::CsvColumns::kNone;
  options.csv = std::move(rows);
  return options;
}

}  // namespace shoal::learn::sparse
