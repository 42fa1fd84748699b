#include "controller/store/record_text.h"

#include "base/utf8.h"

namespace shoal::controller {
namespace {

Status NotUtf8(const std::string& where, std::string_view text) {
  return InvalidArgument("'" + where + "': got \"" + EscapedUtf8(text) +
                         "\", which is not UTF-8 and cannot be recorded; give it, or the file or "
                         "directory that it names, a name in UTF-8");
}

// Recurses through objects and lists; `where` is the path of the value in the record.
Status CheckValue(const std::string& where, const json::value& value) {
  if (value.is_string()) {
    return IsUtf8(value.get_string()) ? Status::Ok() : NotUtf8(where, value.get_string());
  }
  if (value.is_array()) {
    size_t at = 0;
    for (const json::value& item : value.get_array())
      TRY(CheckValue(where + "[" + std::to_string(at++) + "]", item));
  }
  if (value.is_object()) {
    for (const auto& field : value.get_object()) {
      const std::string_view name = field.key();
      if (!IsUtf8(name)) return NotUtf8(where.empty() ? "a field's name" : where, name);
      TRY(CheckValue(where.empty() ? std::string(name) : where + "." + std::string(name),
                     field.value()));
    }
  }
  return Status::Ok();
}

}  // namespace

Status CheckUtf8(const json::object& job) { return CheckValue("", job); }

std::string RecordText(const json::object& body) {
  std::string text = ToText(body);
  return IsUtf8(text) ? text : ValidUtf8(text);
}

}  // namespace shoal::controller
