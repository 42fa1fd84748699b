// XML as object stores answer it, read by expat: elements and text, without attributes. Bounded; a
// declaration of types, and so of entities, is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::data {

struct XmlElement {
  std::string name;  // without a prefix: "s3:Key" is "Key"
  std::string text;  // all text directly in it
  std::vector<XmlElement> children;

  // The first child of that name; null: none.
  const XmlElement* Find(std::string_view child) const;
  // Its text; empty without it.
  std::string TextOf(std::string_view child) const;
};

// The root element. DataLoss for anything that is no such document, or exceeds 16 levels or 100,000
// elements. O(bytes).
Result<XmlElement> ParseXml(std::string_view bytes);

}  // namespace shoal::data
