#include "data/objects/xml.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace shoal::data {
namespace {

constexpr size_t kMaxXmlDepth = 16;
constexpr size_t kMaxXmlElements = 100'000;

Status NotXml(const char* what) { return DataLoss(std::string("the answer is not XML: ") + what); }

void AppendUtf8(uint32_t code, std::string* to) {
  const auto put = [to](uint32_t byte) { *to += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

class XmlParser {
 public:
  explicit XmlParser(std::string_view bytes) : rest_(bytes) {}

  Result<XmlElement> Run() {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
    TRY(SkipOther());
    if (!rest_.starts_with('<')) return NotXml("it begins with no element");
    XmlElement root;
    TRY(ParseElement(&root, 0));
    TRY(SkipOther());
    if (!rest_.empty()) return NotXml("something follows its element");
    return root;
  }

 private:
  void SkipBlanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }

  Status SkipPast(std::string_view end) {
    const size_t at = rest_.find(end);
    if (at == std::string_view::npos) return NotXml("it is cut off");
    rest_.remove_prefix(at + end.size());
    return Status::Ok();
  }

  // Blanks, comments and processing instructions.
  Status SkipOther() {
    for (SkipBlanks();; SkipBlanks()) {
      if (rest_.starts_with("<?")) {
        TRY(SkipPast("?>"));
      } else if (rest_.starts_with("<!--")) {
        TRY(SkipPast("-->"));
      } else if (rest_.starts_with("<!")) {
        return NotXml("it declares types");
      } else {
        return Status::Ok();
      }
    }
  }

  // A tag's end; the attributes before it are passed over.
  Status SkipAttributes(bool* closed) {
    for (size_t i = 0; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (c == '"' || c == '\'') {
        i = rest_.find(c, i + 1);
        if (i == std::string_view::npos) break;
      } else if (c == '>') {
        *closed = i > 0 && rest_[i - 1] == '/';
        rest_.remove_prefix(i + 1);
        return Status::Ok();
      } else if (c == '<') {
        break;
      }
    }
    return NotXml("a tag does not end");
  }

  Result<std::string> ParseName() {
    const size_t end = std::min(rest_.find_first_of(" \t\r\n/>"), rest_.size());
    if (end == 0 || end > 256) return NotXml("a tag has no name");
    std::string name(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return name;
  }

  Status ParseElement(XmlElement* element, size_t depth) {
    if (depth == kMaxXmlDepth || ++elements_ > kMaxXmlElements) return NotXml("it is too large");
    rest_.remove_prefix(1);
    TRY_ASSIGN(const std::string full, ParseName());
    element->name = full.substr(full.rfind(':') + 1);
    bool closed = false;
    TRY(SkipAttributes(&closed));
    if (closed) return Status::Ok();
    for (;;) {
      TRY(ParseText(&element->text));
      if (rest_.starts_with("</")) break;
      if (rest_.starts_with("<!--")) {
        TRY(SkipPast("-->"));
      } else if (rest_.starts_with("<![CDATA[")) {
        rest_.remove_prefix(9);
        element->text += rest_.substr(0, std::min(rest_.find("]]>"), rest_.size()));
        TRY(SkipPast("]]>"));
      } else if (rest_.starts_with("<!") || rest_.starts_with("<?")) {
        return NotXml("it has declarations inside");
      } else {
        TRY(ParseElement(&element->children.emplace_back(), depth + 1));
      }
    }
    rest_.remove_prefix(2);
    TRY_ASSIGN(const std::string last, ParseName());
    if (last != full) return NotXml("its tags do not match");
    return SkipAttributes(&closed);
  }

  // Text up to the next '<'.
  Status ParseText(std::string* text) {
    for (;;) {
      const size_t end = rest_.find_first_of("<&");
      if (end == std::string_view::npos) return NotXml("it is cut off");
      *text += rest_.substr(0, end);
      rest_.remove_prefix(end);
      if (rest_[0] == '<') return Status::Ok();
      TRY(ParseReference(text));
    }
  }

  Status ParseReference(std::string* text) {
    constexpr size_t kLongest = 10;
    const size_t end = rest_.substr(0, kLongest).find(';');
    if (end == std::string_view::npos) return NotXml("a reference does not end");
    const std::string_view name = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    constexpr std::pair<std::string_view, char> kNamed[] = {
        {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [known, c] : kNamed) {
      if (name != known) continue;
      *text += c;
      return Status::Ok();
    }
    if (!name.starts_with('#')) return NotXml("it has an unknown entity");
    const bool hex = name.size() > 1 && name[1] == 'x';
    const std::string_view digits = name.substr(hex ? 2 : 1);
    uint32_t code = 0;
    const auto parsed =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
    const bool good = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() &&
                      code != 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    if (!good) return NotXml("it has an unknown character");
    AppendUtf8(code, text);
    return Status::Ok();
  }

  std::string_view rest_;
  size_t elements_ = 0;
};

}  // namespace

const XmlElement* XmlElement::Find(std::string_view child) const {
  for (const XmlElement& one : children) {
    if (one.name == child) return &one;
  }
  return nullptr;
}

std::string XmlElement::TextOf(std::string_view child) const {
  const XmlElement* const found = Find(child);
  return found == nullptr ? "" : found->text;
}

Result<XmlElement> ParseXml(std::string_view bytes) { return XmlParser(bytes).Run(); }

}  // namespace shoal::data
