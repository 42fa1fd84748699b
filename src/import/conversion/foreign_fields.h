// The tables of all fields of the foreign schemas and how each is supported. The files in fields/
// are generated from published schemas by tools/foreign_fields; support and sentences are written
// by hand.
//
// FieldReader::ReportUnread reads them, docs/import.md is generated from them, and
// foreign_fields_test.cc imports every field and compares the result with its row.
#pragma once

#include <span>
#include <string_view>

namespace shoal::importer {

// How the import treats a field.
enum class FieldSupport : uint8_t {
  kHonoured,   // it changes the job
  kWarned,     // not kept; a comment in the job file and a line of `shoal run` name it
  kNoted,      // a comment names it
  kRefused,    // an error
  kNested,     // a mapping: each of its fields has a row
  kInherited,  // as the field that contains it
};

struct ForeignField {
  std::string_view definition;  // "PodSpec"
  std::string_view name;        // "nodeSelector"
  std::string_view type;        // tools/foreign_fields/schemas.py
  std::string_view example;     // a value that the test gives it; empty: any of the type
  bool required = false;
  FieldSupport verdict = FieldSupport::kInherited;
  std::string_view engine;        // the only engine that honours it; empty: all
  bool warned_elsewhere = true;   // with other engines: kWarned, else kNoted
  bool importer_reports = false;  // the importer has a message of its own for it
  std::string_view
      sentence;  // of kWarned and kNoted: MEANT; INSTEAD (struct UnsupportedField, section.h)
};

// The fields of a definition in the table's order; empty if there is none. Parses the tables on the
// first call, then O(1). Thread-safe.
std::span<const ForeignField> FindFields(std::string_view definition);

// True if a field of that name is a flag in one of the schemas. As FindFields.
bool IsFlagName(std::string_view name);

}  // namespace shoal::importer
