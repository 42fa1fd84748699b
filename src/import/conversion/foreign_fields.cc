#include "import/conversion/foreign_fields.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/status.h"

namespace shoal::importer {
namespace {

constexpr std::string_view kTables[] = {
#include "import/fields/kubernetes.tsv"
    ,
#include "import/fields/kubeflow.tsv"
    ,
#include "import/fields/volcano.tsv"
    ,
#include "import/fields/jobset.tsv"
    ,
#include "import/fields/trainer.tsv"
    ,
#include "import/fields/ray.tsv"
    ,
#include "import/fields/spark.tsv"
    ,
#include "import/fields/marathon.tsv"
    ,
#include "import/fields/metronome.tsv"
    ,
#include "import/fields/slurm.tsv"
};

// Removes and returns the part of `text` before `separator`, or all of it if there is none.
std::string_view Cut(std::string_view* text, std::string_view separator) {
  const size_t at = text->find(separator);
  const std::string_view part = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + separator.size());
  return part;
}

FieldSupport ParseFieldSupport(std::string_view word) {
  constexpr std::pair<std::string_view, FieldSupport> kWords[] = {
      {"honoured", FieldSupport::kHonoured}, {"told", FieldSupport::kWarned},
      {"mentioned", FieldSupport::kNoted},   {"refused", FieldSupport::kRefused},
      {"within", FieldSupport::kNested},     {"-", FieldSupport::kInherited}};
  for (const auto& [name, verdict] : kWords) {
    if (name == word) return verdict;
  }
  SHOAL_CHECK(false);
}

ForeignField ParseRow(std::string_view line) {
  ForeignField field;
  field.definition = Cut(&line, "\t");
  field.name = Cut(&line, "\t");
  std::string_view kind = Cut(&line, "\t");
  field.required = kind.ends_with('!');
  if (field.required) kind.remove_suffix(1);
  field.type = Cut(&kind, "=");
  field.example = kind;
  std::string_view verdict = Cut(&line, "\t");
  field.verdict = ParseFieldSupport(Cut(&verdict, "@"));
  field.engine = Cut(&verdict, "+");
  field.importer_reports = verdict.starts_with("own");
  field.warned_elsewhere = !verdict.ends_with("mentioned");
  field.sentence = line;
  return field;
}

using Definitions = std::unordered_map<std::string_view, std::vector<ForeignField>>;

Definitions Parse() {
  Definitions definitions;
  for (std::string_view table : kTables) {
    while (!table.empty()) {
      const std::string_view line = Cut(&table, "\n");
      if (line.empty() || line.starts_with('#')) continue;
      const ForeignField field = ParseRow(line);
      definitions[field.definition].push_back(field);
    }
  }
  return definitions;
}

const Definitions& AllDefinitions() {
  static const Definitions definitions = Parse();
  return definitions;
}

std::unordered_set<std::string_view> FlagNames() {
  std::unordered_set<std::string_view> names;
  for (const auto& [definition, fields] : AllDefinitions()) {
    for (const ForeignField& field : fields) {
      if (field.type == "flag") names.insert(field.name);
    }
  }
  return names;
}

}  // namespace

std::span<const ForeignField> FindFields(std::string_view definition) {
  const auto found = AllDefinitions().find(definition);
  return found == AllDefinitions().end() ? std::span<const ForeignField>() : found->second;
}

bool IsFlagName(std::string_view name) {
  static const std::unordered_set<std::string_view> flags = FlagNames();
  return flags.contains(name);
}

}  // namespace shoal::importer
