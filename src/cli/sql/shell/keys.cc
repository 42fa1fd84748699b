#include "cli/sql/shell/keys.h"

#include <string_view>
#include <utility>

namespace shoal::cli {
namespace {

constexpr char kEscape = 27;
constexpr std::string_view kPasteEnd = "\x1b[201~";

void AddPasted(char c, char before, std::string* text) {
  if (c == '\n' && before == '\r') return;
  const char kept = c == '\r' ? '\n' : c;
  const bool shown = static_cast<unsigned char>(kept) >= ' ' || kept == '\n' || kept == '\t';
  if (shown && kept != 127 && text->size() < kMaxPaste) *text += kept;
}

// Of pasted text, up to its end mark.
std::string ReadPaste(const ReadByte& read) {
  std::string text, tail;  // of an end mark, so far
  char before = 0;
  for (;;) {
    const std::optional<char> byte = read(true);
    if (!byte) return text;
    tail += *byte;
    if (kPasteEnd.starts_with(tail)) {
      if (tail == kPasteEnd) return text;
      continue;
    }
    std::string other = std::exchange(tail, *byte == kEscape ? std::string(1, kEscape) : "");
    other.resize(other.size() - tail.size());
    for (const char c : other) AddPasted(c, std::exchange(before, c), &text);
  }
}

// ESC [ parameters letter
Key ReadSequence(const ReadByte& read) {
  std::string parameters;
  for (;;) {
    const std::optional<char> byte = read(false);
    if (!byte || parameters.size() > 16) return {};
    if (*byte == ';' || (*byte >= '0' && *byte <= '9')) {
      parameters += *byte;
      continue;
    }
    const bool word = parameters.ends_with(";5") || parameters.ends_with(";3");
    switch (*byte) {
      case 'A':
        return {KeyKind::kUp, ""};
      case 'B':
        return {KeyKind::kDown, ""};
      case 'C':
        return {word ? KeyKind::kWordRight : KeyKind::kRight, ""};
      case 'D':
        return {word ? KeyKind::kWordLeft : KeyKind::kLeft, ""};
      case 'H':
        return {KeyKind::kHome, ""};
      case 'F':
        return {KeyKind::kEnd, ""};
      case '~':
        if (parameters == "1" || parameters == "7") return {KeyKind::kHome, ""};
        if (parameters == "4" || parameters == "8") return {KeyKind::kEnd, ""};
        if (parameters == "3") return {KeyKind::kDelete, ""};
        if (parameters == "200") return {KeyKind::kText, ReadPaste(read)};
        return {};
      default:
        return {};
    }
  }
}

Key ReadEscape(const ReadByte& read) {
  const std::optional<char> next = read(false);
  if (!next) return {};  // the key Escape itself
  if (*next == '[' || *next == 'O') return ReadSequence(read);
  if (*next == 'b') return {KeyKind::kWordLeft, ""};
  if (*next == 'f') return {KeyKind::kWordRight, ""};
  if (*next == '\r') return {KeyKind::kText, "\n"};  // Alt-Enter
  return {};
}

KeyKind ControlKey(char c) {
  switch (c) {
    case 1:
      return KeyKind::kHome;
    case 2:
      return KeyKind::kLeft;
    case 3:
      return KeyKind::kInterrupt;
    case 4:
      return KeyKind::kEndOfInput;
    case 5:
      return KeyKind::kEnd;
    case 6:
      return KeyKind::kRight;
    case 8:
    case 127:
      return KeyKind::kBackspace;
    case 9:
      return KeyKind::kTab;
    case 10:
    case 13:
      return KeyKind::kEnter;
    case 11:
      return KeyKind::kCutToEnd;
    case 12:
      return KeyKind::kClearScreen;
    case 14:
      return KeyKind::kDown;
    case 16:
      return KeyKind::kUp;
    case 18:
      return KeyKind::kSearch;
    case 21:
      return KeyKind::kCutToStart;
    case 23:
      return KeyKind::kCutWord;
    default:
      return KeyKind::kOther;
  }
}

}  // namespace

Key ReadKey(const ReadByte& read) {
  const std::optional<char> first = read(true);
  if (!first) return {KeyKind::kGone, ""};
  if (*first == kEscape) return ReadEscape(read);
  const auto byte = static_cast<unsigned char>(*first);
  if (byte < ' ' || byte == 127) return {ControlKey(*first), ""};
  Key key{KeyKind::kText, std::string(1, *first)};
  const int more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
  for (int i = 0; i < more; ++i) {
    const std::optional<char> next = read(false);
    if (!next) break;
    key.text += *next;
  }
  return key;
}

}  // namespace shoal::cli
