// What a request of the two protocols asks for, from its method and path.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "net/http/server_exchange.h"

namespace shoal::serving {

enum class InferenceVerb : uint8_t {
  kLive,           // GET /v2/health/live
  kReady,          // GET /v2/health/ready
  kServer,         // GET /v2
  kIndex,          // POST /v2/repository/index
  kMetrics,        // GET /metrics
  kModelReady,     // GET /v2/models/NAME[/versions/V]/ready
  kModelMetadata,  // GET /v2/models/NAME[/versions/V]
  kModelStatus,    // GET /v1/models/NAME[/versions/V], and with /metadata
  kInferV2,        // POST /v2/models/NAME[/versions/V]/infer
  kPredictV1,      // POST /v1/models/NAME[/versions/V]:predict
  kVectorsV1,      // POST /v1/models/NAME[/versions/V]:vectors
};

struct InferenceRoute {
  InferenceVerb verb = InferenceVerb::kLive;
  std::string model = {};  // empty: of no model
  uint64_t version = 0;    // 0: the one in service
};

// NotFound for a path that there is not; Unimplemented, with the method that is expected, for
// another method; InvalidArgument for a version that is no number.
Result<InferenceRoute> RouteOf(const net::HttpServerRequest& request);

}  // namespace shoal::serving
