// Reads the fields of a foreign description and remembers which were read, so that no field of a
// foreign file is ignored silently. Used by all importers. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/conversion/diagnostics.h"
#include "import/conversion/foreign_fields.h"
#include "job/text/yaml_tree.h"

namespace shoal::importer {

// A foreign field that a job file cannot express: its meaning, and what applies instead.
struct UnsupportedField {
  std::string_view name;
  std::string_view meant;    // completes "VALUE said …": "on which nodes the pods run"
  std::string_view instead;  // a sentence part: "the engine chooses"
  bool minor = false;        // changes nothing for the programs
};

// What to do with a value that is a variable of a template, "$NODES"; empty for others.
std::string HintForVariable(std::string_view value);

// A cursor over one mapping of a foreign document.
//
// Readers mark a field as read; ReportUnread then reports all others. Copies have separate marks:
// pass a pointer when callees read fields. The node is not owned and lives as long as the import.
class FieldReader {
 public:
  // `node` is a mapping, `path` its name in messages, `at` the path in the job file where its
  // losses are reported.
  FieldReader(const job::Node& node, std::string path, std::string at, Diagnostics* diagnostics)
      : node_(&node), path_(std::move(path)), at_(std::move(at)), diagnostics_(diagnostics) {}

  // Marks the field as read and gives its node; nullptr if it is missing or null.
  const job::Node* ReadNode(const std::string& name);
  // True if the field is present and not null; does not mark it as read.
  bool HasField(const std::string& name) const;
  // Typed readers. A value of another type, or out of range, is an error and gives nullopt (or an
  // empty list).
  std::optional<std::string> ReadText(const std::string& name);
  std::optional<int64_t> ReadInteger(const std::string& name, int64_t least, int64_t most);
  std::optional<double> ReadNumber(const std::string& name, double least, double most);
  std::optional<bool> ReadFlag(const std::string& name);
  std::optional<std::string> ReadChoice(const std::string& name, std::vector<std::string> choices);
  std::vector<std::string> ReadTexts(const std::string& name);
  std::optional<FieldReader> ReadObject(const std::string& name);
  std::vector<FieldReader> ReadObjects(const std::string& name);
  // Marks all fields as read and gives them as (name, node): for mappings whose keys the user
  // chooses.
  std::vector<std::pair<job::Key, const job::Node*>> ReadAll();

  // The names of all fields, without marking them as read.
  std::vector<std::string> Names() const;

  // Reports every field that was not read, by the table of fields for `definition`
  // (foreign_fields.h) or by `older`, which lists fields that current schemas no longer have. A
  // known field is reported as its table row says; a likely misspelling is an error; any other
  // unknown field is a loss. Also reports fields that were read but only one engine honours.
  void ReportUnread(std::string_view definition, std::span<const UnsupportedField> older = {});

  void AddError(const std::string& name, const std::string& sentence);
  void AddLoss(const std::string& name, const std::string& sentence, bool minor = false);
  // A loss with all engines except `engine`.
  void AddLossExceptOn(const std::string& engine, const std::string& name,
                       const std::string& sentence, bool minor = false);

  const job::Node& node() const { return *node_; }
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
