// Errors and losses of an import.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "job/text/errors.h"
#include "job/text/field_locations.h"

namespace shoal::importer {

// A field of a foreign file that has no equivalent in the job, or only with one engine.
struct ImportLoss {
  job::SourceLocation place;  // in the foreign file
  std::string field;          // "spec.runPolicy.ttlSecondsAfterFinished"
  std::string sentence;       // its meaning, why it is not kept, what to do instead
  std::string at;             // path in the job file before which the comment stands
  bool minor = false;         // does not affect the programs
  std::string engine;         // the only engine that honours the field; empty: none
};

// Collects the errors and losses of one import, in order. Owned by import.cc or dmlc_submit.cc; all
// readers and builders of the import refer to it. `errors` is not owned and must outlive it. Not
// thread-safe.
class Diagnostics {
 public:
  Diagnostics(std::string file, job::Errors* errors) : file_(std::move(file)), errors_(errors) {}

  // An error in the form "FILE:LINE:COL: field: got …, expected …".
  void AddError(const job::SourceLocation& place, const std::string& field,
                const std::string& sentence);
  // A loss; `at` is the path in the job file before which its comment stands.
  void AddLoss(const job::SourceLocation& place, const std::string& field,
               const std::string& sentence, const std::string& at);
  // A loss that does not affect the programs; `shoal run` only counts these.
  void AddMinorLoss(const job::SourceLocation& place, const std::string& field,
                    const std::string& sentence, const std::string& at);

  void Add(ImportLoss loss);

  // From now on, a field whose path begins with `prefix` is reported with `name` in its place: an
  // importer that reads a document made of another one's fields reports the latter. The first
  // matching prefix applies.
  void RenameFields(std::string prefix, std::string name) {
    renamed_.emplace_back(std::move(prefix), std::move(name));
  }

  bool ok() const { return errors_->empty(); }
  std::vector<ImportLoss> TakeLosses() { return std::move(losses_); }

 private:
  std::string NameOf(const std::string& field) const;

  const std::string file_;
  std::vector<std::pair<std::string, std::string>> renamed_;
  job::Errors* const errors_;
  std::vector<ImportLoss> losses_;
};

}  // namespace shoal::importer
