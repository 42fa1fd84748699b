#include "data/examples/classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "data/examples/column_scaling.h"
#include "data/examples/examples.h"

namespace shoal::data {
namespace {

bool IsFinite(std::string_view text, double* value) {
  return ParseWideNumber(text, value) && std::isfinite(*value);
}

bool ComesBefore(const std::string& a, const std::string& b) {
  double x = 0;
  double y = 0;
  const bool a_number = IsFinite(a, &x);
  const bool b_number = IsFinite(b, &y);
  if (a_number != b_number) return a_number;
  return a_number ? x < y : a < b;
}

void SortNames(std::vector<std::string>* names) {
  std::sort(names->begin(), names->end(), ComesBefore);
  names->erase(std::unique(names->begin(), names->end()), names->end());
}

Status NotTwo(const std::vector<std::string>& names, std::string_view expected) {
  return InvalidArgument(
      fmt::format("label: got {} class{}, expected {}: {}{}", names.size(),
                  names.size() == 1 ? "" : "es", expected,
                  fmt::join(names.begin(),
                            names.begin() + std::min<std::ptrdiff_t>(3, std::ssize(names)), ", "),
                  names.size() > 3 ? ", …" : ""));
}

Status TooMany() {
  return InvalidArgument(fmt::format(
      "label: got more than {} classes, expected at most {}; for a label that is a number use the "
      "loss squared",
      kMaxClasses, kMaxClasses));
}

bool HasOwnLabel(std::string_view name) { return name == "-1" || name == "0" || name == "1"; }

}  // namespace

std::string ClassName(std::string_view cell) {
  double value = 0;
  if (!IsFinite(cell, &value)) return std::string(cell);
  return fmt::format("{}", value + 0.0);  // -0 is 0
}

Result<std::vector<std::string>> OrderClasses(std::vector<std::string> names,
                                              std::string_view positive) {
  SortNames(&names);
  if (names.size() == 1) return NotTwo(names, "two");
  const std::string wanted = ClassName(positive);
  if (!positive.empty() && std::find(names.begin(), names.end(), wanted) == names.end()) {
    return InvalidArgument(fmt::format("positive: got {}, expected one of the label's classes: {}",
                                       positive, fmt::join(names, ", ")));
  }
  if (std::all_of(names.begin(), names.end(), HasOwnLabel) && (wanted == "1" || positive.empty()))
    return std::vector<std::string>();
  if (names.size() != 2) return NotTwo(names, "two");
  if (!positive.empty() && names[0] == wanted) std::swap(names[0], names[1]);
  return names;
}

Result<std::vector<std::string>> OrderManyClasses(std::vector<std::string> names) {
  SortNames(&names);
  if (names.size() < 2) return NotTwo(names, "two or more");
  if (names.size() > kMaxClasses) return TooMany();
  return names;
}

Status IndexLabels(ExampleSet* set) {
  std::map<float, size_t> known;
  for (size_t i = 0; i < set->size(); ++i) {
    const auto [found, is_new] = known.try_emplace(set->labels[i] + 0.0f, known.size());
    if (is_new) set->classes.push_back(fmt::format("{}", found->first));
    if (known.size() > kMaxClasses) return TooMany();
    set->labels[i] = static_cast<float>(found->second);
  }
  return Status::Ok();
}

float LabelOf(std::string_view name, const std::vector<std::string>& classes) {
  if (classes.empty()) {
    if (!HasOwnLabel(name)) return std::numeric_limits<float>::quiet_NaN();
    return name == "1" ? 1 : 0;
  }
  const auto found = std::find(classes.begin(), classes.end(), name);
  if (found == classes.end()) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(found - classes.begin());
}

void SetLabels(const std::vector<std::string>& classes, ExampleSet* set) {
  std::vector<float> labels;
  for (const std::string& name : set->classes) labels.push_back(LabelOf(name, classes));
  for (size_t i = 0; i < set->size(); ++i)
    set->labels[i] = labels[static_cast<size_t>(set->labels[i])];
}

}  // namespace shoal::data
