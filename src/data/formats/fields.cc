#include "data/formats/fields.h"

#include <fmt/format.h>

#include <cmath>

namespace shoal::data {

std::string_view TextOf(const TableCell& cell, std::string* room) {
  switch (cell.kind) {
    case TableCell::Kind::kParsed:
    case TableCell::Kind::kText:
      return cell.text;
    case TableCell::Kind::kInteger:
      *room = fmt::format_int(cell.integer).str();
      return *room;
    case TableCell::Kind::kFloat:
      if (std::isnan(cell.real)) return {};
      *room = fmt::format("{}", static_cast<float>(cell.real));
      return *room;
    case TableCell::Kind::kReal:
      if (std::isnan(cell.real)) return {};
      *room = fmt::format("{}", cell.real);
      return *room;
    case TableCell::Kind::kMissing:
    case TableCell::Kind::kList:
      break;
  }
  return {};
}

}  // namespace shoal::data
