// Writes a model directory of any kind: its files are written and synced in a staging directory,
// then put in place together. save_model.cc (vectors), linear_model.cc and factor_model.cc define
// the contents.
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

// The files of one model in its staging directory. Not thread-safe. Call Add for each file, then
// AddMetadata.
class ModelFiles {
 public:
  // The files will replace those of the same names in `old`, whose attributes they get.
  ModelFiles(std::filesystem::path directory, std::filesystem::path old)
      : directory_(std::move(directory)), old_(std::move(old)) {}

  // Creates the file, calls `write`, which returns the SHA-256 of what it wrote, and syncs the
  // file. Returns the digest.
  Result<std::string> Add(std::string_view name,
                          const std::function<Result<std::string>(int fd)>& write);
  // Writes model.json: format, versions and time, then `metadata`, then the files added so far.
  // Call last.
  Status AddMetadata(std::string_view format, const json::object& metadata);

 private:
  const std::filesystem::path directory_;
  const std::filesystem::path old_;
  json::object files_;
};

// Writes all files of a model and returns the digest that identifies it.
using WriteModel = std::function<Result<std::string>(ModelFiles&)>;

// Saves a model of any kind; the procedure is described at SaveModel (save_model.h).
Result<SavedModel> SaveModelFiles(const std::filesystem::path& directory, const WriteModel& write);

// OK if model.json of the directory lists the file with the digest of these bytes, or does not list
// it. DataLoss otherwise: a save that replaced files one by one was killed, or files of two models
// were mixed.
Status CheckModelFile(const std::filesystem::path& directory, std::string_view name,
                      std::string_view bytes);

}  // namespace shoal::model
