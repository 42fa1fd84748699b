// The contents of $SHOAL_OUTPUT as they are sent: files, directories and symbolic links in one
// order.
//
// Made by output_source.cc, checked and stored by output_store.cc, which trusts none of it.
// docs/formats/rendezvous.md, "Outputs".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "host/files/manifest.h"

namespace shoal::rendezvous {

inline constexpr size_t kMaxOutputEntries = 100'000;
inline constexpr int64_t kMaxOutputBytes = int64_t{256} << 30;  // of one attempt
inline constexpr size_t kOutputFrame = 64 << 10;

struct OutputEntry : host::TreeEntry {
  bool operator==(const OutputEntry&) const = default;
};

json::object ToJson(const OutputEntry& entry);
// InvalidArgument for a path or link target that leaves the directory (host/files/manifest.h), a
// negative size, or an unknown kind.
Result<OutputEntry> OutputEntryFromJson(const json::object& object);

struct OutputTree {
  std::vector<OutputEntry> entries;   // ascending by path: a directory before what is in it
  std::vector<std::string> left_out;  // devices, pipes, sockets, links that leave it, odd names
};

// Lists a directory; empty if there is none. ResourceExhausted beyond the limits. O(entries).
Result<OutputTree> ListOutputTree(const std::filesystem::path& directory);

}  // namespace shoal::rendezvous
