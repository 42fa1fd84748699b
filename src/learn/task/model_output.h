// Where a trained model goes: a directory of this machine, or a folder of a store (`--output
// s3://bucket/models/clicks`), to which the finished directory is uploaded.
#pragma once

#include <filesystem>
#include <functional>

#include "base/status.h"
#include "model/save_model.h"

namespace shoal::learn {

// Whether a model may be written there: as model::CheckModelOutput; for a folder of a store
// InvalidArgument for what is no folder to write to, and, with `ask`, FailedPrecondition if it
// holds other things than a model, and the store's errors. Without `ask` the store is not connected
// to.
Status CheckModelDestination(const std::filesystem::path& output, bool ask);

// Calls `save` with the directory, or with a temporary one whose files it then uploads, model.json
// last, so that a reader that waits for model.json sees a whole model. Files of an older model
// that the new one lacks stay.
Result<model::SavedModel> SaveModelAt(
    const std::filesystem::path& output,
    const std::function<Result<model::SavedModel>(const std::filesystem::path&)>& save);

}  // namespace shoal::learn
