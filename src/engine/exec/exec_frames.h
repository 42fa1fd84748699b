// The frames between a caller of Engine::Exec and `shoal enter` beside the task's program. They use
// the two streams that every engine provides: the command's standard input and error. Standard
// output is passed unframed. Used by remote_exec.cc and exec_server.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::engine {

// First bytes of the server on its error stream. Anything before them is an error message of a
// program that failed to start `shoal enter`.
inline constexpr std::string_view kExecHello = "\x01shoal-exec-1\n";
// Limit of unacknowledged input bytes. The server buffers input that the command does not read, so
// signals never wait behind it.
inline constexpr size_t kExecWindow = 1 << 20;

// One frame. `a`, `b` and `bytes` have the meaning given at each kind; others are 0 or empty.
struct ExecFrame {
  enum class Kind : uint8_t {
    kBytes = 1,   // to the server: input; from the server: standard error of the command
    kEndOfInput,  // to the server
    kSignal,      // to the server: signal a
    kSize,        // to the server: terminal size, a rows and b columns
    kTaken,       // from the server: a bytes of input were read or discarded
    kEnded,       // from the server, last: exit code a, signal b
    kFailed,      // from the server, last: status code a, message in bytes; the start failed
  };
  Kind kind = Kind::kBytes;
  int32_t a = 0;
  int32_t b = 0;
  std::string bytes = {};
};

// u8 kind, i32 a, i32 b, u32 length, bytes; little-endian.
std::string EncodeExecFrame(const ExecFrame& frame);

// Assembles frames from arriving bytes. Plain value.
class ExecFrameReader {
 public:
  // DataLoss for an unknown kind or a frame of more than kExecWindow bytes.
  Status Feed(std::string_view bytes, std::vector<ExecFrame>* frames);

 private:
  std::string rest_;
};

}  // namespace shoal::engine
