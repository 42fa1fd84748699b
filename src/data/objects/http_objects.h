// Files of web servers, by ranges.
#pragma once

#include <memory>

#include "data/objects/http_transport.h"
#include "data/objects/object.h"

namespace shoal::data {

// Servers without ranges are read whole up to this length, and refused above it.
inline constexpr size_t kMaxWholeBody = 64 << 20;

// Read only; without listing. Up to five redirects are followed, by the transport's rule.
std::unique_ptr<ObjectStore> MakeHttpStore(std::shared_ptr<HttpTransport> transport);

// "bytes 0-9/1234" → 1234; "bytes */0" → 0. DataLoss for anything else, also for an unknown length.
Result<uint64_t> LengthOfContentRange(const std::string& value);

}  // namespace shoal::data
