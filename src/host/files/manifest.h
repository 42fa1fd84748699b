// What a shipped directory holds: its files by the hash of their content, its directories and its
// links.
//
// Written by snapshot.cc where the job is submitted, read on every host (place_files.cc), where it
// came over a socket: ParseManifest lets nothing through that could write or point outside of the
// directory. docs/formats/files.md has the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::host {

inline constexpr size_t kMaxManifestEntries = 100'000;
inline constexpr size_t kMaxManifestBytes = size_t{48} << 20;
inline constexpr size_t kMaxShippedPath = 1024;                // bytes
inline constexpr int kMaxShippedDepth = 64;                    // directories
inline constexpr int64_t kMaxShippedBytes = int64_t{4} << 30;  // of all files together

// What stands in a directory that travels.
struct TreeEntry {
  enum class Kind : uint8_t { kFile, kDirectory, kLink };
  std::string path;  // relative, parts separated by '/', UTF-8
  Kind kind = Kind::kFile;
  bool executable = false;  // of a file, by its owner
  int64_t size = 0;         // of a file, bytes
  std::string target;       // of a link: relative to its directory, ".." only at the beginning

  bool operator==(const TreeEntry&) const = default;
};

struct ManifestEntry : TreeEntry {
  std::string sha256;  // of a file, 64 lower-case hex digits

  bool operator==(const ManifestEntry&) const = default;
};

struct Manifest {
  std::vector<ManifestEntry> entries;  // ascending by path: a directory before what is in it
  int64_t bytes() const;               // of all files
  bool operator==(const Manifest&) const = default;
};

std::string ToText(const Manifest& manifest);
// InvalidArgument names the entry and what is wrong with it.
Result<Manifest> ParseManifest(std::string_view text);

// OK for a path that stays inside: no empty part, "." or "..", no leading slash, no control
// characters, valid UTF-8, within the bounds. The sentence says which of them it breaks.
Status CheckShippedPath(std::string_view path);
// Likewise for the link at `path`.
Status CheckLinkTarget(std::string_view path, std::string_view target);

}  // namespace shoal::host
