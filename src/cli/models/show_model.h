// `shoal show MODEL`: what a linear model or factorization machine has learnt.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "cli/command.h"
#include "learn/sparse/describe.h"

namespace shoal::cli {

struct ShowModelArguments {
  std::string model;
  std::vector<std::string> data;  // files with names of classes; empty: the training data
  int top = 20;
};

struct DescribedModel {
  json::object metadata;
  uint32_t factors = 0;
  learn::sparse::ModelDescription description;
};

// Reads the model. InvalidArgument for word vectors.
Result<DescribedModel> DescribeModelAt(const ShowModelArguments& arguments);

// Whether `path` is the directory of a model, and so no job is meant.
bool IsModelDirectory(const std::string& path);

// Prints the model; the command's exit code.
int ShowModel(const Context& context, const ShowModelArguments& arguments);

}  // namespace shoal::cli
