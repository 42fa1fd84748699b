// Saves a trained word-vector model as a directory: vectors.bin, vectors.txt, vocab.txt and
// model.json, replaced in one step (docs/formats/model.md). Worker 0 calls SaveModel at the end of
// the training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "model/vectors.h"

namespace shoal::model {

// The content of a model, given by the trainer. Rows and words come through callbacks, so that
// nothing is copied as a whole.
struct ModelContent {
  RowSource vectors;
  std::function<uint64_t(uint64_t row)> count;  // occurrences of the row's word in the text
  bool text = true;                             // also vectors.txt
  // Copied to model.json: "parameters", "loss" (the curve: [[words, loss], …]), "data" (files,
  // digest, words), "training" (seconds, words_per_second, workers, …). SaveModel adds "format",
  // "shoal" (version), "created", "vectors" (rows, dim) and "files" with their SHA-256.
  json::object metadata;
};

struct SavedModel {
  std::filesystem::path directory;
  std::string digest;  // SHA-256 of vectors.bin, in hex: equal for equal vectors
};

// OK if a model can be saved to the directory: it does not exist (and its nearest existing parent
// is writable), is empty, or holds a model, which will be replaced. FailedPrecondition names the
// first file that is not part of a model, so that other files are never overwritten. Call it before
// training.
Status CheckModelOutput(const std::filesystem::path& directory);

// Writes a new directory beside `directory`, syncs it, and exchanges the two in one step. If
// anything fails, an old model stays complete and no partial files remain.
//
// If the directory cannot be exchanged (a mount point, a read-only parent, the working directory of
// a process, attributes that cannot be copied), files are replaced one by one, model.json last.
// Links, owner, group, mode and access lists are kept, and so are other files that appeared since
// CheckModelOutput. If the directory can no longer take a model, it is saved to `directory`.saved,
// and the returned error says so.
Result<SavedModel> SaveModel(const std::filesystem::path& directory, const ModelContent& content);

// Reads model.json of a model directory. NotFound; DataLoss if it is not a model's.
Result<json::object> ReadModelMetadata(const std::filesystem::path& directory);
// The SHA-256 of a vectors.bin or of that of a model directory, computed from its bytes.
Result<std::string> DigestOf(const std::filesystem::path& path);

}  // namespace shoal::model
