// Parses the text of a job file into a tree of nodes with source locations. The only file that uses
// the YAML library. It enforces bounds and gives clear errors for input that is not a job file.
//
// parse.cc builds the tree, overrides.cc changes it, decode.cc reads it.
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
  std::string text;     // text of a scalar
  bool quoted = false;  // quoted or block scalar: always a text, never a number or flag
  SourceLocation place;
  std::vector<Key> keys;    // keys of a map, parallel to items, without duplicates
  std::vector<Node> items;  // items of a list or values of a map

  Node* Find(std::string_view key);
  const Node* Find(std::string_view key) const;
};

// Bounds of one file, after the expansion of aliases.
inline constexpr int kMaxDepth = 32;
inline constexpr int kMaxNodes = 200'000;
inline constexpr size_t kMaxTreeBytes = size_t{8} << 20;  // total of texts and field names

// Parses a single document; a null node if it is empty. Problems go to `errors`. For a value of
// --set, `set` is the number of the argument, which the nodes' locations refer to in place of the
// file.
Node ParseYaml(std::string_view text, int set, Errors* errors);

// Parses all documents in order; empty ones are null nodes. The bounds apply to their sum. Intended
// for files of other systems: the merge key "<<" copies missing fields from another map.
std::vector<Node> ParseYamlDocuments(std::string_view text, Errors* errors);

// True if the text is UTF-8 without NUL, as every scalar of a job must be.
bool IsText(std::string_view text);

// Short description for messages: "'abc'" (shortened and printable), "a list", "fields", "nothing".
std::string DescribeNode(const Node& node);
// The text in quotes, shortened and printable, for messages about untrusted input.
std::string PrintableText(std::string_view text);

}  // namespace shoal::job
