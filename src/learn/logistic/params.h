// Parameters of logistic regression: the table for file, flags, documentation and model.json, and
// the struct that the trainer reads.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "learn/params/param_fields.h"
#include "learn/sparse/params.h"

namespace shoal::learn::logistic {

// Plain data. The defaults suit `ftrl` on rows of unit length.
struct Params : sparse::CommonParams {
  Params();
  static constexpr std::string_view kName = "logistic";
  static std::span<const ParamField<Params>> Fields();  // static storage

  std::string optimizer = "ftrl";
  double alpha = 0.7;
  double beta = 0.03;
  double l1 = 0;
  double l2 = 0;

  bool ftrl() const { return optimizer == "ftrl"; }
};

// Of the algorithm `linear`: the same, with the loss that the labels suggest.
struct LinearParams : Params {
  LinearParams() { loss = "auto"; }
  static constexpr std::string_view kName = "linear";
  static std::span<const ParamField<LinearParams>> Fields();  // static storage
};

}  // namespace shoal::learn::logistic
