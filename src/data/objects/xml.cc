#include "data/objects/xml.h"

#include <expat.h>
#include <fmt/format.h>

#include <memory>
#include <type_traits>

namespace shoal::data {
namespace {

constexpr size_t kMostLevels = 16;
constexpr size_t kMostElements = 100'000;

// What expat has read of a document.
struct Tree {
  XML_Parser parser = nullptr;
  XmlElement root;
  std::vector<XmlElement*> open;  // from the root on; an element gets no sibling while it is open
  size_t elements = 0;
  const char* refused = nullptr;  // why this reader stopped

  void Refuse(const char* why) {
    if (refused == nullptr) refused = why;
    XML_StopParser(parser, XML_FALSE);
  }
};

void OnStart(void* data, const XML_Char* name, const XML_Char** /*attributes*/) {
  auto& tree = *static_cast<Tree*>(data);
  if (tree.open.size() == kMostLevels) return tree.Refuse("more than 16 levels");
  if (++tree.elements > kMostElements) return tree.Refuse("more than 100000 elements");
  XmlElement* const element =
      tree.open.empty() ? &tree.root : &tree.open.back()->children.emplace_back();
  const std::string_view whole(name);
  element->name = whole.substr(whole.find(':') + 1);  // npos + 1 is 0
  tree.open.push_back(element);
}

void OnEnd(void* data, const XML_Char* /*name*/) { static_cast<Tree*>(data)->open.pop_back(); }

void OnText(void* data, const XML_Char* text, int size) {
  auto& tree = *static_cast<Tree*>(data);
  if (!tree.open.empty()) tree.open.back()->text.append(text, static_cast<size_t>(size));
}

void OnDoctype(void* data, const XML_Char* /*name*/, const XML_Char* /*system*/,
               const XML_Char* /*public_id*/, int /*has_internal_subset*/) {
  static_cast<Tree*>(data)->Refuse("a declaration of types");
}

}  // namespace

const XmlElement* XmlElement::Find(std::string_view child) const {
  for (const XmlElement& one : children)
    if (one.name == child) return &one;
  return nullptr;
}

std::string XmlElement::TextOf(std::string_view child) const {
  const XmlElement* const found = Find(child);
  return found == nullptr ? "" : found->text;
}

Result<XmlElement> ParseXml(std::string_view bytes) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate("UTF-8"), &XML_ParserFree);
  if (parser == nullptr) return Unavailable("XML: out of memory");
  if (bytes.size() > size_t{INT32_MAX}) return DataLoss("XML: more than 2 GiB");
  Tree tree;
  tree.parser = parser.get();
  XML_SetUserData(parser.get(), &tree);
  XML_SetElementHandler(parser.get(), OnStart, OnEnd);
  XML_SetCharacterDataHandler(parser.get(), OnText);
  XML_SetStartDoctypeDeclHandler(parser.get(), OnDoctype);
  if (XML_Parse(parser.get(), bytes.data(), static_cast<int>(bytes.size()), XML_TRUE) ==
      XML_STATUS_OK)
    return std::move(tree.root);
  const char* const why =
      tree.refused != nullptr ? tree.refused : XML_ErrorString(XML_GetErrorCode(parser.get()));
  return DataLoss(fmt::format("XML: {} at byte {}", why, XML_GetCurrentByteIndex(parser.get())));
}

}  // namespace shoal::data
