#include "api/rest/sse.h"

namespace shoal::api {

std::string SseText(std::string_view event, std::string_view id, const json::value& data) {
  std::string text;
  if (!id.empty()) text += "id: " + std::string(id) + "\n";
  text += "event: " + std::string(event) + "\n";
  return text + "data: " + ToText(data) + "\n\n";  // ToText has no line breaks
}

}  // namespace shoal::api
