// Fuzz entry: messages between nodes of a ps-lite job, as they come from a socket. What is accepted
// fits its head; nothing else happens.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/bytes.h"
#include "door/lite/line.h"

namespace {

using shoal::door::LetterHead;

void CheckHead(std::string_view bytes) {
  LetterHead head;
  if (!shoal::door::ReadLetterHead(bytes.substr(0, sizeof head), &head).ok()) return;
  if (head.parts > 3 || head.body > shoal::door::kMaxBody) std::abort();
  for (size_t i = 0; i < 3; ++i) {
    if (head.part[i] > shoal::door::kMaxParts) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  CheckHead(text);
  if (size < sizeof(LetterHead)) return 0;
  // With the checksum put right, so that what is behind it is met.
  LetterHead head;
  std::memcpy(&head, bytes, sizeof head);
  head.magic = LetterHead().magic;
  head.version = 1;
  head.crc = shoal::Crc32c(&head, sizeof head - sizeof head.crc);
  CheckHead({reinterpret_cast<const char*>(&head), sizeof head});
  return 0;
}
