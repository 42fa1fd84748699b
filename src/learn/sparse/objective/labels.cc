#include "learn/sparse/objective/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "data/examples/classes.h"

namespace shoal::learn::sparse {
namespace {

void ScaleLabels(const LabelScale& scale, data::ExampleSet* set) {
  for (size_t i = 0; i < set->size(); ++i)
    set->labels[i] = scale.Scaled(set->label_offset + static_cast<double>(set->labels[i]));
}

Status CheckTwoLabels(const DatasetSummary& all) {
  const std::vector<uint64_t>& counts = all.class_counts;
  if (counts.size() != 2 || counts[0] + counts[1] != all.total()) return Status::Ok();
  if (counts[0] > 0 && counts[1] > 0) return Status::Ok();
  return InvalidArgument(fmt::format("label: all {} examples have label {}, expected two classes",
                                     all.total(), counts[0] > 0 ? "-1 or 0" : "1"));
}

constexpr std::string_view kBalanced = "balanced";

// Names of the classes, in the order of their labels.
std::vector<std::string> ClassNames(const WorkerSetup& setup) {
  const std::vector<std::string>& names =
      setup.meaning.columns ? setup.meaning.columns->classes : setup.meaning.target.classes;
  return names.empty() ? std::vector<std::string>{"0", "1"} : names;
}

// Examples of each class; those of -1 count as those of 0 where the classes have no names.
std::vector<double> ClassCounts(const DatasetSummary& all, const std::vector<std::string>& names) {
  std::vector<double> counts(names.size());
  for (size_t c = 0; c < all.class_counts.size(); ++c) {
    std::string name = c < all.classes.size() ? all.classes[c] : std::to_string(c);
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end() && name == "-1") found = std::find(names.begin(), names.end(), "0");
    if (found == names.end()) continue;
    counts[static_cast<size_t>(found - names.begin())] += static_cast<double>(all.class_counts[c]);
  }
  return counts;
}

// By class; their mean over all examples is 1.
Result<std::vector<double>> ClassWeights(const WorkerSetup& setup, const DatasetSummary& all) {
  const std::vector<std::string> names = ClassNames(setup);
  const std::vector<double> counts = ClassCounts(all, names);
  std::vector<double> weights(names.size(), 1);
  if (setup.params.class_weight == kBalanced) {
    for (size_t c = 0; c < names.size(); ++c) weights[c] = counts[c] > 0 ? 1 / counts[c] : 0;
  } else {
    TRY_ASSIGN(const auto given, ParseClassWeights(setup.params.class_weight));
    for (const auto& [name, weight] : given) {
      const auto found = std::find(names.begin(), names.end(), data::ClassName(name));
      if (found == names.end()) {
        return InvalidArgument(fmt::format(
            "class_weight: got class {}, expected one of {}", name,
            fmt::join(names.begin(),
                      names.begin() + std::min<std::ptrdiff_t>(12, std::ssize(names)), ", ")));
      }
      weights[static_cast<size_t>(found - names.begin())] = weight;
    }
  }
  double sum = 0;
  for (size_t c = 0; c < names.size(); ++c) sum += weights[c] * counts[c];
  if (!(sum > 0)) return InvalidArgument("class_weight: the weights of all examples are 0");
  for (double& weight : weights) weight *= static_cast<double>(all.total()) / sum;
  return weights;
}

}  // namespace

// Adds what a set has of each class, or its labels that are numbers.
void CountLabels(const data::ExampleSet& set, const Loss& loss,
                 const std::vector<std::string>& named, PartSummary* share) {
  data::ColumnSummary weights;
  for (size_t i = 0; i < set.weights.size(); ++i) weights.Add(static_cast<double>(set.weights[i]));
  share->weights.Merge(weights);
  if (loss.predicts_numbers()) {
    data::ColumnSummary labels;
    for (size_t i = 0; i < set.size(); ++i)
      labels.Add(set.label_offset + static_cast<double>(set.labels[i]));
    return share->labels.Merge(labels);
  }
  const std::vector<std::string>& names = set.classes.empty() ? named : set.classes;
  std::vector<uint64_t> counts(std::max<size_t>(2, names.size()));
  for (size_t i = 0; i < set.size(); ++i) ++counts[static_cast<size_t>(set.labels[i])];
  if (names.empty() && share->classes.empty()) {  // -1 and 0, and 1
    share->class_counts.resize(2);
    for (size_t c = 0; c < 2; ++c) share->class_counts[c] += counts[c];
  }
  for (size_t c = 0; c < names.size(); ++c) {
    const auto known = std::find(share->classes.begin(), share->classes.end(), names[c]);
    const auto place = static_cast<size_t>(known - share->classes.begin());
    if (known == share->classes.end()) share->classes.push_back(names[c]);
    share->class_counts.resize(share->classes.size());
    share->class_counts[place] += counts[c];
  }
}

size_t ClassesOf(const WorkerSetup& setup) {
  if (setup.meaning.target.loss.kind != LossKind::kSoftmax) return 1;
  return setup.meaning.columns ? setup.meaning.columns->classes.size()
                               : setup.meaning.target.classes.size();
}

Status NameLabels(const DatasetSummary& all, bool named, WorkerSetup* setup,
                  std::initializer_list<std::vector<LoadedShard>*> data) {
  if (all.total() == 0) return Status::Ok();
  Target& target = setup->meaning.target;
  if (target.loss.predicts_numbers()) {
    TRY_ASSIGN(target.scale, LabelScaleOf(target.loss.kind, all.labels));
    for (auto* const shards : data) {
      for (LoadedShard& shard : *shards) ScaleLabels(target.scale, &shard.set);
    }
    return Status::Ok();
  }
  std::vector<std::string> names;
  if (target.loss.kind == LossKind::kSoftmax) {
    TRY_ASSIGN(names, data::OrderManyClasses(all.classes));
  } else if (named) {
    TRY_ASSIGN(names, data::OrderClasses(all.classes, setup->params.positive));
  } else {
    return CheckTwoLabels(all);
  }
  for (auto* const shards : data) {
    for (LoadedShard& shard : *shards) data::SetLabels(names, &shard.set);
  }
  (setup->meaning.columns ? setup->meaning.columns->classes : target.classes) = std::move(names);
  return Status::Ok();
}

Status NameLabelsAsBase(const WorkerSetup& setup,
                        std::initializer_list<std::vector<LoadedShard>*> data) {
  const Target& target = setup.meaning.target;
  for (auto* const shards : data) {
    for (LoadedShard& shard : *shards) {
      if (target.loss.predicts_numbers()) ScaleLabels(target.scale, &shard.set);
      if (target.classes.empty()) continue;
      for (const std::string& name : shard.set.classes) {
        if (!std::isnan(data::LabelOf(name, target.classes))) continue;
        return InvalidArgument(fmt::format(
            "label: got {}, which is none of the {} classes of the model {} that is continued",
            name, target.classes.size(), setup.params.from));
      }
      data::SetLabels(target.classes, &shard.set);
    }
  }
  return Status::Ok();
}

Status NameHeldOutLabels(const Target& target, data::ExampleSet* set) {
  if (target.loss.predicts_numbers()) ScaleLabels(target.scale, set);
  if (target.classes.empty()) return Status::Ok();
  TRY(data::IndexLabels(set));
  for (const std::string& name : set->classes) {
    if (!std::isnan(data::LabelOf(name, target.classes))) continue;
    return InvalidArgument(
        fmt::format("the held-out data has label {}, which is none of the {} classes of the "
                    "training data",
                    name, target.classes.size()));
  }
  data::SetLabels(target.classes, set);
  return Status::Ok();
}

Result<std::vector<std::pair<std::string, double>>> ParseClassWeights(std::string_view text) {
  std::vector<std::pair<std::string, double>> weights;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t equals = one.rfind('=');
    double weight = 0;
    const bool number = equals != std::string_view::npos &&
                        data::ParseWideNumber(one.substr(equals + 1), &weight) &&
                        std::isfinite(weight) && weight >= 0;
    if (!number) {
      return InvalidArgument(fmt::format(
          "class_weight: got {}, expected balanced, or CLASS=WEIGHT,… with weights of at least 0",
          one));
    }
    weights.emplace_back(one.substr(0, equals), weight);
  }
  return weights;
}

Status WeighExamples(const WorkerSetup& setup, const DatasetSummary& all,
                     std::vector<LoadedShard>* shards) {
  std::vector<double> of_class;
  if (!setup.params.class_weight.empty()) {
    if (setup.meaning.target.loss.predicts_numbers()) {
      return InvalidArgument(fmt::format("class_weight: the loss {} has no classes",
                                         NameOf(setup.meaning.target.loss.kind)));
    }
    TRY_ASSIGN(of_class, ClassWeights(setup, all));
  }
  const bool own = all.weights.numbers > 0;
  if (!own && of_class.empty()) return Status::Ok();
  const double mean = own ? all.weights.mean() : 1;
  if (!(mean > 0)) return InvalidArgument("weight: the weights of all examples are 0");
  for (LoadedShard& shard : *shards) {
    data::ExampleSet& set = shard.set;
    if (set.weights.empty()) {
      for (size_t i = 0; i < set.size(); ++i) set.weights.Push(1);
    }
    for (size_t i = 0; i < set.size(); ++i) {
      const double weight = static_cast<double>(set.weights[i]) / mean;
      const auto c = static_cast<size_t>(set.labels[i]);
      set.weights[i] = static_cast<float>(of_class.empty() ? weight : weight * of_class[c]);
    }
  }
  return Status::Ok();
}

}  // namespace shoal::learn::sparse
