// Cells as JSON, appended to a text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "data/formats/fields.h"

namespace shoal::data {

// A string in quotes, with \xNN for bytes that are no UTF-8.
void AppendJsonText(std::string_view text, std::string* to);

// A number, a string, true, false, or null for what is missing and what is no finite number. A cell
// of CSV is a number if it reads as one of JSON ("007" and ".5" do not). With `marked`, a real
// number has a point or an exponent, so that it does not read as an integer.
void AppendJsonCell(const TableCell& cell, bool marked, std::string* to);
void AppendJsonList(std::span<const TableCell> cells, bool marked, std::string* to);

// The place of an escape (\ud800) that is half of a character and lacks its other half, which makes
// a text no JSON; npos if there is none.
size_t FindLoneSurrogate(std::string_view json);

// A row of named fields as an object of one line, without its line end.
class JsonRow final : public FieldVisitor {
 public:
  void Begin() { text_ = "{"; }
  void Value(std::string_view name, const TableCell& cell) override;
  void List(std::string_view name, std::span<const TableCell> values) override;
  void LeftOut(std::string_view /*name*/) override {}
  // The object, valid until the next Begin.
  std::string_view End() { return text_ += '}'; }

 private:
  void Name(std::string_view name);
  std::string text_;
};

}  // namespace shoal::data
