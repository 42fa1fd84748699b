#include "base/portable_json.h"

#include <cmath>
#include <utility>

#include "base/utf8.h"

namespace shoal {

json::value PortableJson(json::value value) {
  if (value.is_double() && !std::isfinite(value.get_double())) return nullptr;
  if (value.is_string()) return json::string(ValidUtf8(value.get_string()));
  if (value.is_array()) {
    for (json::value& item : value.get_array()) item = PortableJson(std::move(item));
  }
  if (value.is_object()) {
    json::object portable;
    for (auto& field : value.get_object())
      portable[ValidUtf8(field.key())] = PortableJson(std::move(field.value()));
    return portable;
  }
  return value;
}

}  // namespace shoal
