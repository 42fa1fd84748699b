// Reading of foreign descriptions: a cursor over one section of fields that remembers which of them
// were asked for, so that nothing in a foreign file is dropped in silence; and what is told of it.
//
// The importers of this folder read with it; import.cc owns the Notes of a file.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dialect/import/foreign_fields.h"
#include "dialect/import/import.h"
#include "job/errors.h"
#include "job/yaml_tree.h"

namespace shoal::dialect {

// Errors and losses of one foreign file.
class Notes {
 public:
  Notes(std::string file, job::Errors* errors) : file_(std::move(file)), errors_(errors) {}

  // "FILE:LINE:COL: field: got …, expected …".
  void Wrong(const job::Place& place, const std::string& field, const std::string& sentence);
  // `at`: the path in the job file before which the comment stands.
  void Lose(const job::Place& place, const std::string& field, const std::string& sentence,
            const std::string& at);
  // A loss that changes nothing for the programs; `shoal run` only counts these.
  void Mention(const job::Place& place, const std::string& field, const std::string& sentence,
               const std::string& at);

  void Add(Loss loss) { losses_.push_back(std::move(loss)); }

  bool ok() const { return errors_->empty(); }
  std::vector<Loss> TakeLosses() { return std::move(losses_); }

 private:
  const std::string file_;
  job::Errors* const errors_;
  std::vector<Loss> losses_;
};

// A field that a dialect has and a job file has not: what it was for, and what holds instead.
struct Unkept {
  std::string_view name;
  std::string_view meant;    // completes "said …": "on which nodes the pods run"
  std::string_view instead;  // a sentence part: "the engine chooses"
  bool minor = false;        // changes nothing for the programs
};

// One section; does not own the node, which lives as long as the import.
class Section {
 public:
  // `node` is a map; `path` is how messages call it; `at` where its losses are told in the job
  // file.
  Section(const job::Node& node, std::string path, std::string at, Notes* notes)
      : node_(&node), path_(std::move(path)), at_(std::move(at)), notes_(notes) {}

  // The field's node, nullptr if it is missing or nothing. Counts as read.
  const job::Node* Take(const std::string& name);
  bool Has(const std::string& name) const;
  // Readers: a value of the wrong kind is an error and reads as missing.
  std::optional<std::string> Text(const std::string& name);
  std::optional<int64_t> Integer(const std::string& name, int64_t least, int64_t most);
  std::optional<double> Number(const std::string& name, double least, double most);
  std::optional<bool> Flag(const std::string& name);
  std::optional<std::string> Choice(const std::string& name, std::vector<std::string> choices);
  std::vector<std::string> Texts(const std::string& name);
  std::optional<Section> Sub(const std::string& name);
  std::vector<Section> Subs(const std::string& name);
  // Every field of the section as (name, node), for sections whose names are the user's.
  std::vector<std::pair<job::Key, const job::Node*>> All();

  // The names of all fields, which do not count as read by this.
  std::vector<std::string> Names() const;

  // Tells of every field that was not read, as the table of fields (foreign_fields.h) has it for
  // `definition`, or `older`, for fields that the schemas do not have any more: a loss if it is one
  // of them, an error if it is nearly the name of one, else the loss of a field that nobody here
  // knows. Also of those that one engine only heeds.
  void Rest(std::string_view definition, std::span<const Unkept> older = {});

  void Wrong(const std::string& name, const std::string& sentence);
  void Lose(const std::string& name, const std::string& sentence, bool minor = false);
  // A loss with every engine but this one.
  void KeepFor(const std::string& engine, const std::string& name, const std::string& sentence,
               bool minor = false);

  const std::string& path() const { return path_; }
  const std::string& at() const { return at_; }
  void set_at(std::string at) { at_ = std::move(at); }
  std::string PathOf(const std::string& name) const;
  job::Place PlaceOf(const std::string& name) const;
  const job::Place& place() const { return node_->place; }
  Notes* notes() const { return notes_; }

 private:
  void TellField(const ForeignField& field, const job::Node& value);
  void TellUnkept(const std::string& name, const job::Node& value, std::string_view meant,
                  std::string_view instead, bool minor);
  void TellUnknown(size_t index, std::span<const ForeignField> fields,
                   std::span<const Unkept> older);

  const job::Node* node_;
  std::string path_;
  std::string at_;
  Notes* notes_;
  std::set<std::string> asked_;
};

}  // namespace shoal::dialect
