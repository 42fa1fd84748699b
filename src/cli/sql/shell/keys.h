// Keys of a terminal in raw mode: bytes and escape sequences become keys.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace shoal::cli {

enum class KeyKind : uint8_t {
  kText,  // characters to insert; several for what was pasted
  kEnter,
  kTab,
  kBackspace,
  kDelete,
  kLeft,
  kRight,
  kUp,
  kDown,
  kHome,
  kEnd,
  kWordLeft,
  kWordRight,
  kCutToStart,   // Ctrl-U
  kCutToEnd,     // Ctrl-K
  kCutWord,      // Ctrl-W
  kClearScreen,  // Ctrl-L
  kSearch,       // Ctrl-R
  kInterrupt,    // Ctrl-C
  kEndOfInput,   // Ctrl-D
  kGone,         // there is no more input
  kOther,        // a key without a meaning here
};

struct Key {
  KeyKind kind = KeyKind::kOther;
  std::string text;  // of kText
};

// Gives the next byte. `wait`: as long as it takes; else only if it comes within a moment, as the
// bytes of one key do. Nothing: there is none, or the input has ended.
using ReadByte = std::function<std::optional<char>(bool wait)>;

inline constexpr size_t kMaxPaste = size_t{1} << 20;

// Reads one key. Text that a terminal marks as pasted is one key, cut after kMaxPaste bytes, with
// line ends as "\n" and without other control characters.
Key ReadKey(const ReadByte& read);

}  // namespace shoal::cli
