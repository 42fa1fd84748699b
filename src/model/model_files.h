// How a model directory of any kind comes to be: its files are written and synced aside, then put
// in place all at once. save.cc (vectors) and linear.cc say what the files hold.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "model/save_model.h"

namespace shoal::model {

inline constexpr std::string_view kVectorsFormat = "shoal-word-vectors";
inline constexpr std::string_view kLinearFormat = "shoal-linear-model";
inline constexpr std::string_view kFactorFormat = "shoal-factorization-machine";
inline constexpr std::string_view kFieldFactorFormat = "shoal-field-aware-factorization-machine";

// The files of one model that is being made ready. Not thread-safe.
class ModelFiles {
 public:
  // They will replace those of the same names in `old`, whose attributes they keep.
  ModelFiles(std::filesystem::path directory, std::filesystem::path old)
      : directory_(std::move(directory)), old_(std::move(old)) {}

  // Creates the file, has `write` fill it and say its SHA-256, syncs it. Gives the digest.
  Result<std::string> Add(std::string_view name,
                          const std::function<Result<std::string>(int fd)>& write);
  // model.json: format, versions and time, then `metadata`, then the files added so far. Last.
  Status AddMetadata(std::string_view format, const json::object& metadata);

 private:
  const std::filesystem::path directory_;
  const std::filesystem::path old_;
  json::object files_;
};

// Writes one of each kind and gives the digest of what counts.
using WriteModel = std::function<Result<std::string>(ModelFiles&)>;

// As SaveModel (save.h) says.
Result<SavedModel> SaveModelFiles(const std::filesystem::path& directory, const WriteModel& write);

// OK if model.json of the directory names the file with these bytes, or does not name it. DataLoss:
// a save that replaced file by file was killed between two of them, or somebody has copied files of
// two models together.
Status CheckModelFile(const std::filesystem::path& directory, std::string_view name,
                      std::string_view bytes);

}  // namespace shoal::model
