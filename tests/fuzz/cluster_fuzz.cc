// Fuzz entry: the cluster description. What is read can be written and read again to the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "framework/cluster.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto object = shoal::ParseJsonObject(text);
  if (!object.ok()) return 0;
  const auto cluster = shoal::framework::ClusterFromJson(*object);
  if (!cluster.ok()) return 0;
  const auto again = shoal::framework::ClusterFromJson(shoal::framework::ToJson(*cluster));
  if (!again.ok() || !(*again == *cluster)) std::abort();
  return 0;
}
