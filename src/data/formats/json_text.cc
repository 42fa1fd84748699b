#include "data/formats/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/utf8.h"

namespace shoal::data {
namespace {

// JSON's short escapes; 0: none.
char ShortEscape(char c) {
  switch (c) {
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '"':
    case '\\':
      return c;
    default:
      return 0;
  }
}

bool IsPlain(char c) { return static_cast<unsigned char>(c) >= ' ' && c != '"' && c != '\\'; }

void AppendEscaped(char c, std::string* to) {
  constexpr const char* kDigits = "0123456789abcdef";
  to->push_back('\\');
  if (const char escape = ShortEscape(c); escape != 0) {
    to->push_back(escape);
    return;
  }
  const auto byte = static_cast<unsigned char>(c);
  to->append("u00");
  to->push_back(kDigits[byte >> 4]);
  to->push_back(kDigits[byte & 15]);
}

// The unit of UTF-16 that an escape at `at` names (\u1234); 0 if there is none.
uint32_t EscapedUnit(std::string_view json, size_t at) {
  const std::string_view escape = json.substr(std::min(at, json.size()), 6);
  uint32_t unit = 0;
  if (escape.size() < 6 || !escape.starts_with("\\u")) return 0;
  const auto [end, error] = std::from_chars(escape.data() + 2, escape.data() + 6, unit, 16);
  return error == std::errc() && end == escape.data() + 6 ? unit : 0;
}

bool IsFirstHalf(uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool IsSecondHalf(uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

size_t DigitsAt(std::string_view text, size_t at) {
  const size_t begin = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at - begin;
}

// Whether it is a number as JSON writes them (RFC 8259, section 6).
bool IsJsonNumber(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t whole = DigitsAt(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return false;
  at += whole;
  if (at < text.size() && text[at] == '.') {
    const size_t fraction = DigitsAt(text, ++at);
    if (fraction == 0) return false;
    at += fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t exponent = DigitsAt(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

}  // namespace

size_t FindLoneSurrogate(std::string_view json) {
  for (size_t at = json.find('\\'); at != std::string_view::npos; at = json.find('\\', at)) {
    const uint32_t unit = EscapedUnit(json, at);
    if (IsSecondHalf(unit)) return at;
    if (IsFirstHalf(unit) && !IsSecondHalf(EscapedUnit(json, at + 6))) return at;
    at += IsFirstHalf(unit) ? 12 : 2;
  }
  return std::string_view::npos;
}

void AppendJsonText(std::string_view text, std::string* to) {
  std::string room;
  if (!IsUtf8(text)) {
    room = EscapedUtf8(text);
    text = room;
  }
  to->push_back('"');
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && IsPlain(text[end])) ++end;
    to->append(text, at, end - at);
    at = end;
    if (at < text.size()) AppendEscaped(text[at++], to);
  }
  to->push_back('"');
}

void AppendJsonCell(const TableCell& cell, bool marked, std::string* to) {
  using Kind = TableCell::Kind;
  if (cell.kind == Kind::kText && !cell.boolean) return AppendJsonText(cell.text, to);
  if (cell.kind == Kind::kParsed && !IsJsonNumber(cell.text)) return AppendJsonText(cell.text, to);
  const bool real = cell.kind == Kind::kFloat || cell.kind == Kind::kReal;
  std::string room;
  const std::string_view text = TextOf(cell, &room);
  if (text.empty() || (real && !std::isfinite(cell.real))) {
    to->append("null");
    return;
  }
  to->append(text);
  if (marked && real && text.find_first_of(".e") == std::string_view::npos) to->append(".0");
}

void AppendJsonList(std::span<const TableCell> cells, bool marked, std::string* to) {
  to->push_back('[');
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) to->push_back(',');
    AppendJsonCell(cells[i], marked, to);
  }
  to->push_back(']');
}

void JsonRow::Value(std::string_view name, const TableCell& cell) {
  Name(name);
  AppendJsonCell(cell, true, &text_);
}

void JsonRow::List(std::string_view name, std::span<const TableCell> values) {
  Name(name);
  AppendJsonList(values, true, &text_);
}

void JsonRow::Name(std::string_view name) {
  if (text_.size() > 1) text_.push_back(',');
  AppendJsonText(name, &text_);
  text_.push_back(':');
}

}  // namespace shoal::data
