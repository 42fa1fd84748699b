// `shoal show MODEL`: what a linear model or factorization machine has learnt.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace shoal::cli {

struct ShowModelArguments {
  std::string model;
  std::vector<std::string> data;  // files with names of classes; empty: the training data
  int top = 20;
};

// Whether `path` is the directory of a model, and so no job is meant.
bool IsModelDirectory(const std::string& path);

// Prints the model; the command's exit code.
int ShowModel(const Context& context, const ShowModelArguments& arguments);

}  // namespace shoal::cli
