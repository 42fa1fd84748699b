// What becomes of every field of a foreign description: the tables in fields/, which
// tools/foreign_fields makes of published definitions. They say which fields there are, and what is
// told of those that a job file has not; foreign_fields_test.cc imports each of them and compares.
//
// FieldReader::Rest reads with it; docs/import.md is made of the same tables.
#pragma once

#include <span>
#include <string_view>

namespace shoal::importer {

enum class FieldSupport : uint8_t {
  kHonoured,   // the job differs by it
  kWarned,     // a comment names it, and `shoal run` says it
  kNoted,      // a comment names it
  kRefused,    // an error names it
  kNested,     // its own fields say
  kInherited,  // what becomes of the field that holds it
};

struct ForeignField {
  std::string_view definition;  // "PodSpec"
  std::string_view name;        // "nodeSelector"
  std::string_view type;        // tools/foreign_fields/schemas.py
  std::string_view example;     // a value that the test gives it; empty: any of the type
  bool required = false;
  FieldSupport verdict = FieldSupport::kInherited;
  std::string_view engine;        // honoured by this one only; empty: by all
  bool warned_elsewhere = true;   // with other engines it is told, else mentioned
  bool importer_reports = false;  // by its importer's own words, else by the sentence
  std::string_view
      sentence;  // of kWarned and kNoted: MEANT; INSTEAD (struct UnsupportedField, section.h)
};

// In the table's order; empty if there is no such definition. O(1) after the first call.
std::span<const ForeignField> FindFields(std::string_view definition);

}  // namespace shoal::importer
