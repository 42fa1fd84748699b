// The list of a staged directory: its files with the hashes of their contents, directories and
// links.
//
// Written by snapshot.cc where the job is submitted, and read on every host (materialize_files.cc)
// from a socket: ParseManifest rejects entries that could write or point outside of the directory.
// docs/formats/files.md describes the text format.
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
inline constexpr int64_t kMaxShippedBytes = int64_t{4} << 30;  // sum over all files

// A file, directory or link.
struct TreeEntry {
  enum class Kind : uint8_t { kFile, kDirectory, kLink };
  std::string path;  // relative, parts separated by '/', UTF-8
  Kind kind = Kind::kFile;
  bool executable = false;  // of a file, by its owner
  int64_t size = 0;         // of a file, bytes
  std::string target;       // of a link: relative to its directory, ".." only at the beginning

  bool operator==(const TreeEntry&) const = default;
};

// A TreeEntry with the hash of its content.
struct ManifestEntry : TreeEntry {
  std::string sha256;  // of a file, 64 lower-case hex digits

  bool operator==(const ManifestEntry&) const = default;
};

// The entries of a directory. Plain value.
struct Manifest {
  std::vector<ManifestEntry> entries;  // sorted by path: a directory precedes its entries
  int64_t bytes() const;               // sum over all files
  bool operator==(const Manifest&) const = default;
};

std::string ToText(const Manifest& manifest);
// InvalidArgument names the entry and what is wrong with it.
Result<Manifest> ParseManifest(std::string_view text);

// Checks that a path stays inside the directory: no empty part, "." or "..", no leading slash, no
// control characters, valid UTF-8, within the limits. The message names the violated rule.
Status CheckShippedPath(std::string_view path);
// Checks that the target of the link at `path` stays inside the directory.
Status CheckLinkTarget(std::string_view path, std::string_view target);

}  // namespace shoal::host
