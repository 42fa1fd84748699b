#include "engine/exec/exec_frames.h"

#include <utility>

#include "base/bytes.h"

namespace shoal::engine {

std::string EncodeExecFrame(const ExecFrame& frame) {
  std::string out;
  ByteWriter writer(&out);
  writer.Put(frame.kind);
  writer.Put(frame.a);
  writer.Put(frame.b);
  writer.PutString(frame.bytes);
  return out;
}

Status ExecFrameReader::Feed(std::string_view bytes, std::vector<ExecFrame>* frames) {
  constexpr size_t kHead = 13;
  rest_ += bytes;
  size_t at = 0;
  while (rest_.size() - at >= kHead) {
    ByteReader reader(std::string_view(rest_).substr(at));
    ExecFrame frame;
    uint32_t size = 0;
    TRY(reader.Get(&frame.kind));
    TRY(reader.Get(&frame.a));
    TRY(reader.Get(&frame.b));
    TRY(reader.Get(&size));
    if (frame.kind < ExecFrame::Kind::kBytes || frame.kind > ExecFrame::Kind::kFailed ||
        size > kExecWindow)
      return DataLoss("what came from the other end of the command is no frame");
    if (reader.remaining() < size) break;
    frame.bytes = rest_.substr(at + kHead, size);
    at += kHead + size;
    frames->push_back(std::move(frame));
  }
  rest_.erase(0, at);
  return Status::Ok();
}

}  // namespace shoal::engine
