#include "serving/inference/served_model.h"

#include <utility>

#include "model/factor_model.h"
#include "model/model_files.h"
#include "model/vectors.h"

namespace shoal::serving {

Result<std::shared_ptr<const ServedModel>> ServedModel::Load(const std::filesystem::path& directory,
                                                             std::string name, uint64_t version) {
  const std::shared_ptr<ServedModel> made(new ServedModel());
  made->name_ = std::move(name);
  made->version_ = version;
  TRY_ASSIGN(const json::object metadata, model::ReadModelMetadata(directory));
  made->format_ = GetStringOr(metadata, "format", "");
  if (made->format_ == model::kVectorsFormat) {
    TRY_ASSIGN(model::Vectors vectors, model::ReadVectors(directory));
    std::vector<float> values = vectors.values;
    made->vectors_.emplace(
        ServedVectors{model::VectorIndex(std::move(vectors)), std::move(values)});
    return std::shared_ptr<const ServedModel>(made);
  }
  TRY_ASSIGN(model::FactorModel model, model::ReadFactorModel(directory));
  auto scorer = learn::sparse::Scorer::Make(std::move(model), metadata);
  if (!scorer.ok()) return scorer.status().With(directory.string());
  made->scorer_.emplace(std::move(*scorer));
  return std::shared_ptr<const ServedModel>(made);
}

}  // namespace shoal::serving
