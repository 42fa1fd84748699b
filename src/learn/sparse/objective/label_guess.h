// What `loss: auto` means for some data: guessed from the labels of the first lines, which every
// worker sees alike.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "learn/sparse/params.h"

namespace shoal::learn::sparse {

// The loss for these labels: two classes or fewer are logistic; texts, and whole numbers with at
// most 20 different values, softmax; other numbers squared.
LossKind GuessLossOf(const std::vector<std::string>& labels);

// Replaces the loss "auto" of `params` by what the first MiB of the first file says. Errors as
// data::Corpus::Open and OptionsOf.
Status ResolveLoss(data::ExampleFormat format, const std::vector<std::string>& files,
                   CommonParams* params);

}  // namespace shoal::learn::sparse
