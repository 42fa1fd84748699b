// What a task wrote to $SHOAL_OUTPUT, as it goes over the connection from a host that does not see
// the coordinator's directory: its files, directories and links in one order.
//
// Made by output_sender.cc beside the launcher, taken apart by output_store.cc, which believes none
// of it. docs/formats/rendezvous.md, "Outputs".
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
// InvalidArgument for a path or target that does not stay inside (host/files/manifest.h), a
// negative size, a kind that is none.
Result<OutputEntry> OutputEntryFromJson(const json::object& object);

struct OutputTree {
  std::vector<OutputEntry> entries;   // ascending by path: a directory before what is in it
  std::vector<std::string> left_out;  // devices, pipes, sockets, links that leave it, odd names
};

// What a directory holds; empty if there is none. ResourceExhausted beyond the bounds. O(entries).
Result<OutputTree> ListOutputTree(const std::filesystem::path& directory);

}  // namespace shoal::rendezvous
