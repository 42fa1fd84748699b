// Small models of the tests and fuzz programs, saved as a training saves them. Included by them
// only.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/examples/csv.h"
#include "data/examples/examples.h"
#include "learn/sparse/csv_schema_json.h"
#include "learn/sparse/objective/label_scale.h"
#include "model/factor_model.h"
#include "model/save_model.h"
#include "serving/inference/served_model.h"

namespace shoal::serving {

// Ends the process otherwise: fuzz programs have no test framework.
inline void RequireOk(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::abort();
}

// The columns of the table model: y is the label, key names the examples.
inline data::CsvSchema TestSchema() {
  data::CsvSchema schema;
  schema.header = true;
  schema.names = {"y", "id", "age", "zip", "town"};
  schema.label = "y";
  schema.key = "id";
  schema.categorical = {"zip"};
  schema.scales.resize(schema.names.size());
  schema.scales[2] = {40, 0.1, data::CsvIndicator::kMissing};
  schema.row_scale = 0.7f;
  return schema;
}

inline json::object TestMetadata(const std::string& loss, const std::string& format) {
  learn::sparse::Target target;
  target.loss.kind = *learn::sparse::LossKindOf(loss);
  if (target.loss.predicts_numbers()) target.scale = {100, 3};
  json::object data{{"format", format}};
  if (format != "libsvm" && format != "libffm") {
    data::CsvSchema schema = TestSchema();
    if (loss == "softmax") schema.classes = {"a", "b", "c"};
    data["columns"] = learn::sparse::ToJson(schema);
  } else if (loss == "softmax") {
    target.classes = {"a", "b", "c"};
  }
  return {{"parameters", json::object{}},
          {"data", std::move(data)},
          {"target", learn::sparse::ToJson(target)}};
}

// Random weights of all features below 2^bits, or below `features` without hashing.
inline model::FactorModel TestModel(uint32_t hash_bits, uint64_t features, uint32_t classes,
                                    uint32_t factors, uint32_t fields, uint64_t seed = 7) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.5f);
  model::FactorModel model;
  const uint64_t count = (hash_bits > 0 ? uint64_t{1} << hash_bits : features) * classes;
  model.linear.weights = model::ZeroedFloats(count);
  for (float& weight : model.linear.weights) weight = normal(random);
  model.linear.hash_bits = hash_bits;
  if (classes > 1) {
    model.linear.biases = {0.1f, -0.2f, 0.3f};
  } else {
    model.linear.bias = 0.25f;
  }
  model.factors = factors;
  model.fields = fields;
  if (factors > 0) {
    model.v = model::ZeroedFloats(count * model.width());
    for (float& factor : model.v) factor = normal(random);
  }
  return model;
}

inline constexpr uint32_t kTestHashBits = 10;

// A model of the table with a loss; "softmax" has three classes.
inline void SaveTableModel(const std::string& directory, const std::string& loss,
                           uint32_t factors = 0, uint32_t fields = 0, uint64_t seed = 7) {
  const uint32_t classes = loss == "softmax" ? 3 : 1;
  const auto saved =
      model::SaveFactorModel(directory, TestModel(kTestHashBits, 0, classes, factors, fields, seed),
                             TestMetadata(loss, "csv"), false);
  RequireOk(saved.status());
}

inline std::shared_ptr<const ServedModel> LoadedModel(const std::string& directory,
                                                      const std::string& name = "m",
                                                      uint64_t version = 1) {
  auto model = ServedModel::Load(directory, name, version);
  RequireOk(model.status());
  return *model;
}

}  // namespace shoal::serving
