// The text of a job file as a tree of nodes that know where they stood. The only place that touches
// the YAML library; bounds and clear sentences for everything that is not a job file at all.
//
// parse.cc builds it, overrides.cc changes it, decode.cc reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/text/errors.h"

namespace shoal::job {

struct Key {
  std::string text;
  SourceLocation place;
};

struct Node {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text;     // of a scalar
  bool quoted = false;  // a scalar in quotes or a block: a text, never a number or flag
  SourceLocation place;
  std::vector<Key> keys;    // of a map, parallel to items; each once
  std::vector<Node> items;  // of a list or a map

  Node* Find(std::string_view key);
  const Node* Find(std::string_view key) const;
};

// Bounds of one file, aliases expanded.
inline constexpr int kMaxDepth = 32;
inline constexpr int kMaxNodes = 200'000;
inline constexpr size_t kMaxTreeBytes = size_t{8} << 20;  // of texts and names of fields

// The one document in `text`; a null node if it is empty. What is wrong goes to `errors`. For a
// value of --set, `set` is its number and its nodes stand there instead of in the file.
Node ParseYaml(std::string_view text, int set, Errors* errors);

// Every document in `text`, in order; empty ones are null nodes. The bounds are for their sum. For
// files of other systems: the merge key "<<" gives a map the fields of another that it lacks.
std::vector<Node> ParseYamlDocuments(std::string_view text, Errors* errors);

// True if it is UTF-8 without NUL: what a scalar of a job may be.
bool IsText(std::string_view text);

// For messages: "'abc'" cut and made printable, "a list", "fields", "nothing".
std::string DescribeNode(const Node& node);
// Likewise for any text from outside.
std::string PrintableText(std::string_view text);

}  // namespace shoal::job
