// What goes between a caller of Engine::Exec and `shoal enter`, which it has had started far away,
// over the two streams that every engine can give: a command's input and its error stream. Its
// output goes as it is. Used by remote_exec.cc and exec_far_end.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::engine {

// Said by the far end first, on its error stream: what comes before is no frame but words of
// somebody who could not even start it.
inline constexpr std::string_view kExecHello = "\x01shoal-exec-1\n";
// Bytes of input that may be on their way: the far end keeps what the command does not read, so
// that a signal never waits behind it.
inline constexpr size_t kExecWindow = 1 << 20;

struct ExecFrame {
  enum class Kind : uint8_t {
    kBytes = 1,   // to the far end: input; from it: what the command says on its error stream
    kEndOfInput,  // to it
    kSignal,      // to it: a
    kSize,        // to it, of the terminal: a rows, b columns
    kTaken,       // from it: a bytes of input were read, or will not be
    kEnded,       // from it, the last: a exit code, b signal
    kFailed,      // from it, the last: a code of base/status.h, bytes why it could not be started
  };
  Kind kind = Kind::kBytes;
  int32_t a = 0;
  int32_t b = 0;
  std::string bytes = {};
};

// u8 kind, i32 a, i32 b, u32 length, bytes; little-endian.
std::string EncodeExecFrame(const ExecFrame& frame);

// Puts what came together. Plain value.
class ExecFrameReader {
 public:
  // DataLoss for a kind that is not known and for more than kExecWindow bytes in one.
  Status Feed(std::string_view bytes, std::vector<ExecFrame>* frames);

 private:
  std::string rest_;
};

}  // namespace shoal::engine
