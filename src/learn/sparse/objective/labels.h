// What the labels of examples mean: classes by number, or numbers on one scale, as all workers'
// labels together have it; and the weights of examples. Used by worker.h while data is read.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "learn/sparse/dataset.h"
#include "learn/sparse/exchange/part_summary.h"
#include "learn/sparse/objective/label_scale.h"
#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {

// Adds what a set has of each class, or its labels that are numbers, and its weights. `named`: the
// classes whose indices labels are already, else empty.
void CountLabels(const data::ExampleSet& set, const Loss& loss,
                 const std::vector<std::string>& named, PartSummary* share);

// Gives the labels of `data` their meaning and sets the target's scale or classes, or those of
// setup.meaning.columns. `named`: labels are indices of the sets' classes. InvalidArgument for
// labels that are all alike, and for a number of classes that the loss does not have.
Status NameLabels(const DatasetSummary& all, bool named, WorkerSetup* setup,
                  std::initializer_list<std::vector<LoadedShard>*> data);

// The same for a training that continues a model, whose meanings setup.meaning has. InvalidArgument
// for a class that the model has not.
Status NameLabelsAsBase(const WorkerSetup& setup,
                        std::initializer_list<std::vector<LoadedShard>*> data);

// Of setup.meaning.target; 1 unless the loss is softmax.
size_t ClassesOf(const WorkerSetup& setup);

// The same for held-out examples. InvalidArgument for a class that the training data has not.
Status NameHeldOutLabels(const Target& target, data::ExampleSet* set);

// Puts the weights of the examples, times those of their classes, into the sets, so that their mean
// over all workers is 1. InvalidArgument for classes that there are not, and if all weights are 0.
Status WeighExamples(const WorkerSetup& setup, const DatasetSummary& all,
                     std::vector<LoadedShard>* shards);

// The parameter `class_weight`: CLASS=WEIGHT, separated by commas. InvalidArgument, one sentence.
Result<std::vector<std::pair<std::string, double>>> ParseClassWeights(std::string_view text);

}  // namespace shoal::learn::sparse
