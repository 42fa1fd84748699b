// Fuzz entry: what comes from the other end of a command. However it is cut, the frames are the
// same; they are bounded, and written again they are the bytes that were read.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/exec_frames.h"

namespace {

using shoal::engine::ExecFrame;

// The frames, written again, of bytes that come in pieces of so many.
bool Read(std::string_view bytes, size_t piece, std::string* written) {
  shoal::engine::ExecFrameReader reader;
  std::vector<ExecFrame> frames;
  bool ok = true;
  for (size_t at = 0; ok && at < bytes.size(); at += piece)
    ok = reader.Feed(bytes.substr(at, piece), &frames).ok();
  for (const ExecFrame& frame : frames) {
    if (frame.bytes.size() > shoal::engine::kExecWindow) std::abort();
    *written += shoal::engine::EncodeExecFrame(frame);
  }
  return ok;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string whole, pieces;
  const bool ok = Read(bytes, size, &whole);
  if (Read(bytes, 1 + data[0] % 32, &pieces) != ok || whole != pieces) std::abort();
  if (!bytes.starts_with(whole)) std::abort();
  return 0;
}
