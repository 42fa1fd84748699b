// Reading of foreign descriptions: a cursor over one section of fields that remembers which of them
// were asked for, so that nothing in a foreign file is dropped in silence; and what is told of it.
//
// The importers of this folder read with it; import.cc owns the Diagnostics of a file.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/conversion/foreign_fields.h"
#include "import/import.h"
#include "job/text/errors.h"
#include "job/text/yaml_tree.h"

namespace shoal::importer {

// Errors and losses of one foreign file.
class Diagnostics {
 public:
  Diagnostics(std::string file, job::Errors* errors) : file_(std::move(file)), errors_(errors) {}

  // "FILE:LINE:COL: field: got …, expected …".
  void AddError(const job::SourceLocation& place, const std::string& field,
                const std::string& sentence);
  // `at`: the path in the job file before which the comment stands.
  void AddLoss(const job::SourceLocation& place, const std::string& field,
               const std::string& sentence, const std::string& at);
  // A loss that changes nothing for the programs; `shoal run` only counts these.
  void AddMinorLoss(const job::SourceLocation& place, const std::string& field,
                    const std::string& sentence, const std::string& at);

  void Add(ImportLoss loss) { losses_.push_back(std::move(loss)); }

  bool ok() const { return errors_->empty(); }
  std::vector<ImportLoss> TakeLosses() { return std::move(losses_); }

 private:
  const std::string file_;
  job::Errors* const errors_;
  std::vector<ImportLoss> losses_;
};

// A field that a dialect has and a job file has not: what it was for, and what holds instead.
struct UnsupportedField {
  std::string_view name;
  std::string_view meant;    // completes "said …": "on which nodes the pods run"
  std::string_view instead;  // a sentence part: "the engine chooses"
  bool minor = false;        // changes nothing for the programs
};

// One section; does not own the node, which lives as long as the import.
class FieldReader {
 public:
  // `node` is a map; `path` is how messages call it; `at` where its losses are told in the job
  // file.
  FieldReader(const job::Node& node, std::string path, std::string at, Diagnostics* diagnostics)
      : node_(&node), path_(std::move(path)), at_(std::move(at)), diagnostics_(diagnostics) {}

  // The field's node, nullptr if it is missing or nothing. Counts as read.
  const job::Node* ReadNode(const std::string& name);
  bool HasField(const std::string& name) const;
  // Readers: a value of the wrong kind is an error and reads as missing.
  std::optional<std::string> ReadText(const std::string& name);
  std::optional<int64_t> ReadInteger(const std::string& name, int64_t least, int64_t most);
  std::optional<double> ReadNumber(const std::string& name, double least, double most);
  std::optional<bool> ReadFlag(const std::string& name);
  std::optional<std::string> ReadChoice(const std::string& name, std::vector<std::string> choices);
  std::vector<std::string> ReadTexts(const std::string& name);
  std::optional<FieldReader> ReadObject(const std::string& name);
  std::vector<FieldReader> ReadObjects(const std::string& name);
  // Every field of the section as (name, node), for sections whose names are the user's.
  std::vector<std::pair<job::Key, const job::Node*>> ReadAll();

  // The names of all fields, which do not count as read by this.
  std::vector<std::string> Names() const;

  // Tells of every field that was not read, as the table of fields (foreign_fields.h) has it for
  // `definition`, or `older`, for fields that the schemas do not have any more: a loss if it is one
  // of them, an error if it is nearly the name of one, else the loss of a field that nobody here
  // knows. Also of those that one engine only heeds.
  void ReportUnread(std::string_view definition, std::span<const UnsupportedField> older = {});

  void AddError(const std::string& name, const std::string& sentence);
  void AddLoss(const std::string& name, const std::string& sentence, bool minor = false);
  // A loss with every engine but this one.
  void AddLossExceptOn(const std::string& engine, const std::string& name,
                       const std::string& sentence, bool minor = false);

  const std::string& path() const { return path_; }
  const std::string& at() const { return at_; }
  void set_at(std::string at) { at_ = std::move(at); }
  std::string PathOf(const std::string& name) const;
  job::SourceLocation PlaceOf(const std::string& name) const;
  const job::SourceLocation& place() const { return node_->place; }
  Diagnostics* diagnostics() const { return diagnostics_; }

 private:
  void ReportField(const ForeignField& field, const job::Node& value);
  void ReportUnsupported(const std::string& name, const job::Node& value, std::string_view meant,
                         std::string_view instead, bool minor);
  void ReportUnknown(size_t index, std::span<const ForeignField> fields,
                     std::span<const UnsupportedField> older);

  const job::Node* node_;
  std::string path_;
  std::string at_;
  Diagnostics* diagnostics_;
  std::set<std::string> asked_;
};

}  // namespace shoal::importer
