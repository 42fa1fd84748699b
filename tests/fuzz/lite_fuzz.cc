// Fuzz entry: messages between nodes of a ps-lite job, as they come from a socket. What is accepted
// fits its head; nothing else happens.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/bytes.h"
#include "bindings/ps_lite/connection.h"

namespace {

using shoal::bindings::MessageHeader;

void CheckHead(std::string_view bytes) {
  MessageHeader head;
  if (!shoal::bindings::ReadMessageHeader(bytes.substr(0, sizeof head), &head).ok()) return;
  if (head.parts > 3 || head.body > shoal::bindings::kMaxBody) std::abort();
  for (size_t i = 0; i < 3; ++i) {
    if (head.part[i] > shoal::bindings::kMaxParts) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  CheckHead(text);
  if (size < sizeof(MessageHeader)) return 0;
  // With the checksum put right, so that what is behind it is met.
  MessageHeader head;
  std::memcpy(&head, bytes, sizeof head);
  head.magic = MessageHeader().magic;
  head.version = 1;
  head.crc = shoal::Crc32c(&head, sizeof head - sizeof head.crc);
  CheckHead({reinterpret_cast<const char*>(&head), sizeof head});
  return 0;
}
