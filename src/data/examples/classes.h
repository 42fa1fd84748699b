// Names of the classes of labels: any texts or numbers; two of them, or more where several classes
// are learnt. While a file is read an
// example's label is the index of its class's name in ExampleSet::classes; what all readers have
// seen decides which class is label 0 and which is label 1 (as column_scaling.h does for columns).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::data {

struct ExampleSet;

inline constexpr size_t kMaxBinaryClasses = 3;  // -1, 0 and 1; otherwise two
inline constexpr size_t kMaxClasses = 1000;
inline constexpr size_t kMaxClassName = 1024;

// The name of a label cell: numbers in their shortest form, so that "1.0" and "+1" are "1".
std::string ClassName(std::string_view cell);

// `names` without repetitions, ordered: numbers by value, then texts by bytes. `positive` is moved
// to the end if it is not empty. Result: the names of labels 0 and 1; empty for any of -1, 0 and 1,
// whose labels are their own (-1 is 0). InvalidArgument for other than two classes, and for a
// positive class that is none of them.
Result<std::vector<std::string>> OrderClasses(std::vector<std::string> names,
                                              std::string_view positive);

// `names` without repetitions, in the same order. InvalidArgument for fewer than two classes, and
// for more than kMaxClasses.
Result<std::vector<std::string>> OrderManyClasses(std::vector<std::string> names);

// Makes of labels that are numbers indices of set->classes. InvalidArgument for more than
// kMaxClasses.
Status IndexLabels(ExampleSet* set);

// The label of a class: its index in `classes`, or for none its own; NaN if it has none.
float LabelOf(std::string_view name, const std::vector<std::string>& classes);

// Replaces the labels of a set, which are indices of set->classes.
void SetLabels(const std::vector<std::string>& classes, ExampleSet* set);

}  // namespace shoal::data
