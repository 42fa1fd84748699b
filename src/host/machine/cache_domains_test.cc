#include "host/machine/cache_domains.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/file.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

// A processor with a first-level cache of its own and, unless `sharers` is empty, a third-level
// one.
void AddCpu(const fs::path& root, int cpu, const std::string& sharers) {
  const fs::path cache = root / ("cpu" + std::to_string(cpu)) / "cache";
  fs::create_directories(cache / "index0");
  std::ofstream(cache / "index0" / "level") << "1\n";
  std::ofstream(cache / "index0" / "shared_cpu_list") << cpu << "\n";
  if (sharers.empty()) return;
  fs::create_directories(cache / "index3");
  std::ofstream(cache / "index3" / "level") << "3\n";
  std::ofstream(cache / "index3" / "shared_cpu_list") << sharers << "\n";
}

TEST(CacheDomains, AreThoseOfTheLastLevel) {
  const TempDir root = std::move(*TempDir::Create());
  for (const int cpu : {0, 1, 4, 5}) AddCpu(root.path(), cpu, "0-1,4-5");
  for (const int cpu : {2, 3, 6, 7}) AddCpu(root.path(), cpu, "2-3,6-7");
  const CacheDomains all = ReadCacheDomains(root.path(), {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(all.count, 2u);
  EXPECT_EQ(all.of_cpu, (std::vector<uint32_t>{0, 0, 1, 1, 0, 0, 1, 1}));
  // Of a process that may run on some of them only.
  const CacheDomains some = ReadCacheDomains(root.path(), {3, 6});
  EXPECT_EQ(some.count, 1u);
  EXPECT_EQ(some.Of(6), 0u);
  EXPECT_EQ(some.Of(100), 0u);
  EXPECT_EQ(some.Of(-1), 0u);
}

TEST(CacheDomains, AreOneWhereTheSystemDoesNotTell) {
  const TempDir root = std::move(*TempDir::Create());
  AddCpu(root.path(), 0, "");
  AddCpu(root.path(), 1, "");
  EXPECT_EQ(ReadCacheDomains(root.path(), {0, 1}).count, 1u);
  EXPECT_EQ(ReadCacheDomains(root.path() / "none", {0, 1}).count, 1u);
  EXPECT_EQ(ReadCacheDomains(root.path(), {}).count, 1u);
  EXPECT_GE(FindCacheDomains().count, 1u);
}

}  // namespace
}  // namespace shoal::host
