// Between the classes of include/shoal (namespace v1) and those of src/ps.
#pragma once

#include <shoal/ps.h>

#include "base/status.h"
#include "ps/types.h"

namespace shoal::door {

ps::v1::Status Public(const Status& status);
Status Internal(const ps::v1::Status& status);
// The value, converted by `convert`, or the error.
template <typename To, typename From, typename Convert>
ps::v1::Result<To> PublicResult(Result<From> result, const Convert& convert) {
  if (!result.ok()) return Public(result.status());
  return convert(std::move(result).value());
}

ps::TableSpec Internal(const ps::v1::TableSpec& spec);
ps::TableRef Internal(const ps::v1::Table& table);
ps::Consistency Internal(const ps::v1::Consistency& consistency);
ps::v1::Counters Public(const ps::Counters& counters);

}  // namespace shoal::door
