// Bodies of requests to models in service, entries of their registry, and the files of models: any
// bytes give an answer that is JSON, or an error.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "data/examples/example_input.h"
#include "serving/inference/inference.h"
#include "serving/inference/test_models.h"
#include "serving/registry/model_history.h"

namespace {

using namespace shoal::serving;

// A table model, a field-aware one without columns, and word vectors.
std::vector<std::shared_ptr<const ServedModel>> MakeModels() {
  const auto directory = shoal::TempDir::Create();
  if (!directory.ok()) std::abort();
  const std::string path = directory->path().string();
  SaveTableModel(path + "/table", "softmax", 2);
  if (!shoal::model::SaveFactorModel(path + "/ffm", TestModel(0, 50, 1, 2, 3),
                                     TestMetadata("logistic", "libffm"), false)
           .ok())
    std::abort();
  shoal::model::Vectors vectors;
  vectors.words = {"king", "queen", "bread"};
  vectors.dim = 2;
  vectors.values = {3, 0, 2, 0.5f, 0, 1};
  if (!shoal::model::SaveModel(path + "/words", {.vectors = shoal::model::RowsOf(vectors),
                                                 .count = [](uint64_t) { return uint64_t{1}; },
                                                 .metadata = {}})
           .ok())
    std::abort();
  return {LoadedModel(path + "/table"), LoadedModel(path + "/ffm"), LoadedModel(path + "/words")};
}

void Check(const shoal::Result<InferenceReply>& reply) {
  if (reply.ok() && !shoal::ParseJsonObject(reply->body).ok()) std::abort();
  if (!reply.ok() && reply.status().message().empty()) std::abort();
}

// A model.json that says what it likes about small weights: what is read predicts, or is refused.
void CheckMetadata(const shoal::json::object& metadata) {
  for (const uint32_t classes : {1u, 3u}) {
    auto scorer = shoal::learn::sparse::Scorer::Make(TestModel(4, 0, classes, 2, 0, 7), metadata);
    if (!scorer.ok()) continue;
    shoal::data::ExampleSet set;
    shoal::data::ExampleInput input(scorer->options(), &set);
    const bool table = scorer->options().csv != nullptr;
    const auto added = table ? input.AddObject("{\"age\": 31.5, \"town\": \"Rome\"}")
                             : input.AddLine("0:1:2 1:3:0.5");
    shoal::learn::sparse::Scratch scratch;
    if (added.ok() && scorer->Score(&set, &scratch).ok() && set.size() != 1) std::abort();
  }
}

// Files of weights and factors that are no such files.
void CheckModelFiles(std::string_view bytes) {
  constexpr uint64_t kMost = 1 << 12;
  auto linear = shoal::model::DecodeLinearModel(bytes, kMost);
  if (linear.ok() && linear->features() > 0 && linear->weights.empty()) std::abort();
  shoal::model::FactorModel model = TestModel(4, 0, 1, 0, 0);
  if (shoal::model::DecodeFactors(bytes, &model).ok() &&
      model.v.size() != model.linear.weights.size() * model.width())
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto models = MakeModels();
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const auto& model : models) {
    Check(InferV2(*model, body, {.max_batch = 64, .max_neighbours = 8}));
    Check(PredictV1(*model, body, {.max_batch = 64, .max_neighbours = 8}));
    Check(VectorsV1(*model, body, {.max_batch = 64, .max_neighbours = 8}));
  }
  CheckModelFiles(body);
  const auto entry = shoal::ParseJsonObject(body);
  if (entry.ok()) CheckMetadata(*entry);
  ModelHistory history;
  if (entry.ok() && history.Apply(*entry).ok() && history.entries() != 1) std::abort();
  return 0;
}
