#include "data/objects/copy_object.h"

#include <utility>
#include <vector>

#include "data/objects/read_ahead.h"

namespace shoal::data {

Result<ObjectInfo> CopyObject(ObjectStores* stores, const std::string& from, const std::string& to,
                              const std::function<void(uint64_t)>& progress) {
  TRY_ASSIGN(const auto object, stores->Open(from));
  TRY_ASSIGN(const auto writer, stores->Create(to));
  ReadAhead bytes(object, object->info().bytes, {.first_block = 1 << 20});
  std::vector<char> block(1 << 20);
  for (;;) {
    TRY_ASSIGN(const size_t got, bytes.Read(block.data(), block.size()));
    if (got == 0) return writer->Finish();
    TRY(writer->Append(std::string_view(block.data(), got)));
    if (progress) progress(got);
  }
}

}  // namespace shoal::data
