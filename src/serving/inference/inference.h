// Requests for predictions in the bodies of two protocols, answered by a model: Open Inference
// Protocol v2 (KServe) and the REST interface of TensorFlow Serving. Pure functions of the body.
// docs/serving.md describes both.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "serving/inference/served_model.h"

namespace shoal::serving {

struct InferenceLimits {
  size_t max_batch = 4096;       // instances of a request
  size_t max_neighbours = 1000;  // of each
};

// What a request came to.
struct InferenceReply {
  std::string body;  // JSON
  size_t instances = 0;
};

// `POST /v2/models/NAME/infer`. InvalidArgument for a body that is not one or does not fit the
// model: names the instance, the column, what was got and expected. NotFound for unknown words;
// ResourceExhausted for a batch over the limit.
Result<InferenceReply> InferV2(const ServedModel& model, std::string_view body,
                               const InferenceLimits& limits);
// `POST /v1/models/NAME:predict`; errors as InferV2.
Result<InferenceReply> PredictV1(const ServedModel& model, std::string_view body,
                                 const InferenceLimits& limits);
// `POST /v1/models/NAME:vectors`: the vectors of words; errors as InferV2.
Result<InferenceReply> VectorsV1(const ServedModel& model, std::string_view body,
                                 const InferenceLimits& limits);

// `GET /v2/models/NAME`: inputs and outputs.
std::string MetadataV2(const ServedModel& model);

// JSON of a text that may not be UTF-8, with its quotes.
std::string Quoted(std::string_view text);

}  // namespace shoal::serving
