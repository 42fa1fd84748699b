// Between the classes of include/shoal (namespace v1) and those of src/ps.
#pragma once

#include <shoal/ps.h>

#include "base/status.h"
#include "ps/types.h"

namespace shoal::bindings {

ps::v1::Status ToPublic(const Status& status);
Status FromPublic(const ps::v1::Status& status);
// The value, converted by `convert`, or the error.
template <typename To, typename From, typename Convert>
ps::v1::Result<To> ToPublicResult(Result<From> result, const Convert& convert) {
  if (!result.ok()) return ToPublic(result.status());
  return convert(std::move(result).value());
}

ps::TableSpec FromPublic(const ps::v1::TableSpec& spec);
ps::TableRef FromPublic(const ps::v1::Table& table);
ps::Consistency FromPublic(const ps::v1::Consistency& consistency);
ps::v1::Counters ToPublic(const ps::Counters& counters);

}  // namespace shoal::bindings
