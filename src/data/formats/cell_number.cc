#include "data/formats/cell_number.h"

#include <charconv>

namespace shoal::data {

std::optional<CellNumber> NumberOf(const TableCell& cell) {
  switch (cell.kind) {
    case TableCell::Kind::kMissing:
      return CellNumber{};
    case TableCell::Kind::kInteger:
      return CellNumber{true, cell.integer, static_cast<double>(cell.integer)};
    case TableCell::Kind::kFloat:
    case TableCell::Kind::kReal:
      return CellNumber{false, 0, cell.real};
    case TableCell::Kind::kText:
      if (cell.boolean)
        return CellNumber{true, cell.text == "true", cell.text == "true" ? 1.0 : 0.0};
      return std::nullopt;
    case TableCell::Kind::kParsed:
      break;
    case TableCell::Kind::kList:
      return std::nullopt;
  }
  std::string_view text = cell.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  CellNumber number;
  if (const auto whole = std::from_chars(text.data(), end, number.integer);
      whole.ec == std::errc() && whole.ptr == end)
    return CellNumber{true, number.integer, static_cast<double>(number.integer)};
  const auto real = std::from_chars(text.data(), end, number.real);
  if (real.ec != std::errc() || real.ptr != end) return std::nullopt;
  return CellNumber{false, 0, number.real};
}

bool IsOnlyHeader(std::span<const std::string> header) {
  return std::ranges::any_of(header, [](const std::string& name) {
    return !NumberOf({.kind = TableCell::Kind::kParsed, .text = name}).has_value();
  });
}

}  // namespace shoal::data
