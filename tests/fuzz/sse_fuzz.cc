// Fuzz entry: server-sent events. Nothing crashes, and nothing depends on how the network cut them.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "net/http/sse_reader.h"
#include "pieces_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using shoal::net::SseEvent;
  using shoal::net::SseReader;
  constexpr size_t kMost = 500;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto twice = shoal::fuzz::FeedTwice<SseEvent>(bytes, SseReader(kMost), SseReader(kMost));
  if (twice.whole_fine != twice.pieces_fine) std::abort();
  if (twice.whole.size() != twice.pieces.size()) std::abort();
  for (size_t i = 0; i < twice.whole.size(); ++i) {
    const SseEvent& one = twice.whole[i];
    const SseEvent& other = twice.pieces[i];
    if (one.type != other.type || one.data != other.data || one.id != other.id) std::abort();
    if (!shoal::IsUtf8(one.data) || one.data.size() > 3 * kMost) std::abort();
  }
  return 0;
}
