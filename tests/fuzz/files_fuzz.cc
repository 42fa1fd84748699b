// Fuzz entry: the list of a job's files as it comes over a socket, and `.shoalignore`. What is read
// leads nowhere out of the directory, and can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "host/files/ignore_rules.h"
#include "host/files/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace shoal::host;  // NOLINT: a program of one function
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto leads_out = [](const std::filesystem::path& path) {
    const auto normal = path.lexically_normal();
    return path.is_absolute() || (!normal.empty() && *normal.begin() == "..");
  };
  if (const auto manifest = ParseManifest(text); manifest.ok()) {
    const auto again = ParseManifest(ToText(*manifest));
    if (!again.ok() || !(*again == *manifest)) std::abort();
    for (const ManifestEntry& entry : manifest->entries) {
      const std::filesystem::path path(entry.path);
      if (leads_out(path) || leads_out(path.parent_path() / entry.target)) std::abort();
    }
  }
  IgnoreRules rules;
  rules.Add(text.substr(0, 4096), "");
  (void)rules.Ignored("a/b.c", false);
  return 0;
}
