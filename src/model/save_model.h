// A trained model as a directory: vectors.bin, vectors.txt, vocab.txt and model.json, put in place
// all at once (docs/formats/model.md). The trainer's chief calls SaveModel at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "model/vectors.h"

namespace shoal::model {

// What a trainer hands over. Nothing is held whole: rows and words come through callbacks.
struct ModelContent {
  RowSource vectors;
  std::function<uint64_t(uint64_t row)> count;  // how often the row's word occurs in the text
  bool text = true;                             // also vectors.txt
  // Goes into model.json as it is: "parameters", "loss" (the curve: [[words, loss], …]), "data"
  // (files, digest, words), "training" (seconds, words_per_second, workers, …). SaveModel adds
  // "format", "shoal" (version), "created", "vectors" (rows, dim) and "files" with their SHA-256.
  json::object metadata;
};

struct SavedModel {
  std::filesystem::path directory;
  std::string digest;  // SHA-256 of vectors.bin, in hex: equal for equal vectors
};

// OK if a model can be saved there: it does not exist (but its nearest existing parent can be
// written), is an empty directory, or holds a model, which will be replaced. FailedPrecondition
// names the first file that is none of a model's, so that nobody's files are ever overwritten.
// Call it before training.
Status CheckModelOutput(const std::filesystem::path& directory);

// Writes everything into a new directory beside `directory`, syncs it, and exchanges the two in one
// step; an old model stays whole until then, whatever fails, and nothing half-written stays behind.
// Where the directory itself cannot be exchanged (a mount point, a parent that may not be written,
// somebody's working directory, attributes that cannot be kept) the files are replaced one by one,
// model.json last. Links, owner, group, mode and access lists stay. Other files that came since
// CheckModelOutput stay too; if there is no place for a model any more, it is saved to
// `directory`.saved, and the error says so.
Result<SavedModel> SaveModel(const std::filesystem::path& directory, const ModelContent& content);

// model.json of a model directory. NotFound; DataLoss if it is no model's.
Result<json::object> ReadModelMetadata(const std::filesystem::path& directory);
// SHA-256 of the vectors.bin of a model directory (or of a file), computed from its bytes.
Result<std::string> DigestOf(const std::filesystem::path& path);

}  // namespace shoal::model
