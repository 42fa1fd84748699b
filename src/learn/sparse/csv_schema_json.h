// What the columns of a CSV file were, in a model's model.json.
#pragma once

#include <optional>

#include "base/json.h"
#include "base/status.h"
#include "data/examples/csv.h"

namespace shoal::learn::sparse {

// {"header": …, "label": …, "names": […], "categorical": […]}. Names that are not all UTF-8 are
// written as if they were Latin-1, with "encoding": "latin-1": so every byte comes back.
json::object ToJson(const data::CsvSchema& schema);

// The object `columns` of model.json's `data`; none in models of programs that did not write it.
// DataLoss if it is malformed.
Result<std::optional<data::CsvSchema>> CsvSchemaFromJson(const json::object& metadata);

}  // namespace shoal::learn::sparse
