// What a trained model has learnt, in words of its data: the features with the largest weights by
// the names of their columns and classes. Used by `shoal show MODEL`; needs no servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/factor_model.h"

namespace shoal::learn::sparse {

struct FeatureEffect {
  std::string name;  // "age", "town=Rome", "age is missing"; a number where there are no columns
  std::string class_name = {};  // of several classes: the one whose margin it is
  // Change of the margin (of numbers: of the prediction) by one deviation of a scaled column, else
  // by value 1.
  double weight = 0;
  // Of a scaled column:
  bool scaled = false;
  double mean = 0;
  double deviation = 0;
  double per_unit = 0;  // likewise by 1
};

struct ModelDescription {
  std::vector<FeatureEffect> effects;  // the largest weights first, none is 0
  uint64_t nonzero = 0;                // weights of the model
  uint64_t unnamed = 0;                // of these: without a name, so not in `effects`
  double bias = 0;                     // of one class
  std::vector<std::string> classes;    // of several
};

struct DescribeOptions {
  // Files in which names of classes are looked for, csv only; those that cannot be read are left
  // out.
  std::vector<std::string> files;
  uint64_t text_limit = 64u << 20;  // bytes of text that are read in all
  size_t limit = 20;                // of `effects`
};

// `metadata` is the model's model.json. Errors as CsvSchemaFromJson.
Result<ModelDescription> DescribeModel(const model::FactorModel& model,
                                       const json::object& metadata,
                                       const DescribeOptions& options);

}  // namespace shoal::learn::sparse
