#include "job/text/yaml_emitter.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <utility>

namespace shoal::job {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 2;

bool IsAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// True for texts that some YAML reader interprets as another type.
bool LooksLikeNoText(const std::string& text) {
  std::string lower;
  for (const char c : text) {
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const std::string_view word :
       {"null", "~", "true", "false", "yes", "no", "on", "off", "y", "n", "=", ".inf", ".nan"}) {
    if (lower == word) return true;
  }
  // Numbers and dates: a digit first, optionally after a sign or a point.
  const size_t first = lower.find_first_not_of("+-.");
  if (first == std::string::npos) return true;
  if (std::isdigit(static_cast<unsigned char>(lower[first])) == 0) {
    return lower.find_first_not_of("+-") != std::string::npos &&
           std::string_view(lower).substr(lower.find_first_not_of("+-")).starts_with(".inf");
  }
  return std::all_of(lower.begin(), lower.end(), [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("+-._xo").find(c) != std::string_view::npos;
  });
}

bool IsPlainSafe(const std::string& text) {
  if (text.empty() || text.starts_with("---") || text.starts_with("...")) return false;
  if (!IsAlnum(text[0]) && std::string_view("_./+-").find(text[0]) == std::string_view::npos) {
    return false;
  }
  if (text[0] == '-' && text.size() == 1) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return IsAlnum(c) || std::string_view("_./@%+=~^-").find(c) != std::string_view::npos;
  });
}

std::string InQuotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string ScalarText(const Node& node) {
  if (node.kind == Node::Kind::kNull) return "~";
  const bool plain = IsPlainSafe(node.text) && !(node.quoted && LooksLikeNoText(node.text));
  return plain ? node.text : InQuotes(node.text);
}

std::string KeyText(const std::string& key) {
  return IsPlainSafe(key) && !LooksLikeNoText(key) ? key : InQuotes(key);
}

// True for a text of several lines that a literal block preserves.
bool FitsLiteral(const Node& node) {
  if (node.kind != Node::Kind::kScalar || !node.quoted) return false;
  const std::string& text = node.text;
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos || text.find('\n') > end) return false;
  if (text.size() > end + 2) return false;  // more than one line break at the end
  char before = '\n';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte >= 0x7f) return false;
    if (c == '\n' && before == ' ') return false;
    before = c;
  }
  return text[0] != ' ' && text[0] != '\n' && before != ' ';
}

class Emitter {
 public:
  explicit Emitter(const Comments& comments) : comments_(comments) {}

  std::string Run(const Node& root) {
    PlaceComments(root);
    Comment("", 0);
    Fields(root, "", 0);
    return std::move(out_);
  }

 private:
  // Assigns each comment to the innermost existing field on its path.
  void PlaceComments(const Node& root);
  void Comment(const std::string& path, size_t indent);
  bool HasCommentBelow(const std::string& path) const;
  void Fields(const Node& map, const std::string& path, size_t indent);
  void Value(const Node& node, const std::string& path, size_t indent);
  void List(const Node& list, size_t indent);
  void Literal(const Node& node, size_t indent);
  static bool Flow(const Node& node, std::string* out);
  size_t Column() const {
    const size_t line = out_.rfind('\n');
    return out_.size() - (line == std::string::npos ? 0 : line + 1);
  }

  const Comments& comments_;
  std::map<std::string, std::vector<std::string>> placed_;
  std::string out_;
};

void Emitter::PlaceComments(const Node& root) {
  for (const auto& [path, sentences] : comments_) {
    const Node* at = &root;
    std::string there;
    for (size_t begin = 0; begin < path.size();) {
      const size_t end = std::min(path.find('.', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      at = at->Find(name);
      if (at == nullptr) break;
      there += (there.empty() ? "" : ".") + name;
      begin = end + 1;
    }
    std::vector<std::string>& into = placed_[there];
    into.insert(into.end(), sentences.begin(), sentences.end());
  }
}

void Emitter::Comment(const std::string& path, size_t indent) {
  const auto known = placed_.find(path);
  if (known == placed_.end()) return;
  for (const std::string& sentence : known->second) {
    std::string line = std::string(indent, ' ') + "#";
    for (size_t begin = 0; begin < sentence.size();) {
      const size_t end = std::min(sentence.find(' ', begin), sentence.size());
      const std::string word = sentence.substr(begin, end - begin);
      if (line.size() + 1 + word.size() > kWidth && line.size() > indent + 3) {
        out_ += line + "\n";
        line = std::string(indent, ' ') + "#  ";
      }
      line += " ";
      for (const char c : word) line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
      begin = end + 1;
    }
    out_ += line + "\n";
  }
}

bool Emitter::HasCommentBelow(const std::string& path) const {
  const auto next = placed_.upper_bound(path);
  return std::any_of(next, placed_.end(),
                     [&](const auto& entry) { return entry.first.starts_with(path + "."); });
}

void Emitter::Fields(const Node& map, const std::string& path, size_t indent) {
  for (size_t i = 0; i < map.keys.size(); ++i) {
    const std::string below = path + (path.empty() ? "" : ".") + map.keys[i].text;
    Comment(below, indent);
    out_ += std::string(indent, ' ') + KeyText(map.keys[i].text) + ":";
    Value(map.items[i], below, indent);
  }
}

// Writes the value after "key:" and the end of the line.
void Emitter::Value(const Node& node, const std::string& path, size_t indent) {
  if (node.kind == Node::Kind::kNull || node.kind == Node::Kind::kScalar) {
    if (FitsLiteral(node)) return Literal(node, indent + kIndent);
    out_ += " " + ScalarText(node) + "\n";
    return;
  }
  // Sections that contain sections use block style.
  const bool sections = node.kind == Node::Kind::kMap &&
                        std::any_of(node.items.begin(), node.items.end(), [](const Node& item) {
                          return item.kind == Node::Kind::kMap && !item.items.empty();
                        });
  std::string flow;
  const bool fits = !sections && !HasCommentBelow(path) && Flow(node, &flow) &&
                    (node.items.empty() || Column() + 1 + flow.size() <= kWidth);
  if (fits) {
    out_ += " " + flow + "\n";
  } else if (node.kind == Node::Kind::kList) {
    out_ += "\n";
    List(node, indent + kIndent);
  } else {
    out_ += "\n";
    Fields(node, path, indent + kIndent);
  }
}

void Emitter::List(const Node& list, size_t indent) {
  for (const Node& item : list.items) {
    out_ += std::string(indent, ' ') + "-";
    if (FitsLiteral(item)) {
      Literal(item, indent + kIndent);
      continue;
    }
    std::string flow;
    if (!Flow(item, &flow)) flow = "~";  // not in a job: lists hold scalars or sections of scalars
    out_ += " " + flow + "\n";
  }
}

void Emitter::Literal(const Node& node, size_t indent) {
  const bool ends = node.text.back() == '\n';
  out_ += ends ? " |\n" : " |-\n";
  for (size_t begin = 0; begin < node.text.size();) {
    const size_t end = std::min(node.text.find('\n', begin), node.text.size());
    if (end > begin) out_ += std::string(indent, ' ') + node.text.substr(begin, end - begin);
    out_ += "\n";
    begin = end + 1;
  }
}

// Writes the node on one line; false if one of its texts needs several lines.
bool Emitter::Flow(const Node& node, std::string* out) {
  if (FitsLiteral(node)) return false;
  if (node.kind == Node::Kind::kNull || node.kind == Node::Kind::kScalar) {
    *out += ScalarText(node);
    return true;
  }
  const bool map = node.kind == Node::Kind::kMap;
  *out += map ? "{" : "[";
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (i > 0) *out += ", ";
    if (map) *out += KeyText(node.keys[i].text) + ": ";
    if (!Flow(node.items[i], out)) return false;
  }
  *out += map ? "}" : "]";
  return true;
}

}  // namespace

std::string EmitYaml(const Node& root, const Comments& comments) {
  return Emitter(comments).Run(root);
}

Node PlainScalar(std::string text) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.text = std::move(text);
  return node;
}

Node TextScalar(std::string text) {
  Node node = PlainScalar(std::move(text));
  node.quoted = true;
  return node;
}

Node TextListNode(const std::vector<std::string>& texts) {
  Node node;
  node.kind = Node::Kind::kList;
  for (const std::string& text : texts) node.items.push_back(TextScalar(text));
  return node;
}

Node NullNode() { return {}; }

Node FromJson(const json::value& value) {
  if (value.is_object()) {
    Node map;
    map.kind = Node::Kind::kMap;
    for (const auto& field : value.get_object())
      AddField(&map, std::string(field.key()), FromJson(field.value()));
    return map;
  }
  if (value.is_array()) {
    Node list;
    list.kind = Node::Kind::kList;
    for (const json::value& item : value.get_array()) list.items.push_back(FromJson(item));
    return list;
  }
  if (value.is_string()) return TextScalar(std::string(value.get_string()));
  if (value.is_double()) {  // the shortest text, 0.05, where JSON is written as 5E-2
    char buffer[64];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value.get_double());
    if (error == std::errc()) return PlainScalar(std::string(buffer, end));
  }
  return PlainScalar(ToText(value));
}

Node* AddField(Node* map, std::string key, Node value) {
  map->kind = Node::Kind::kMap;
  map->keys.push_back({std::move(key), {}});
  map->items.push_back(std::move(value));
  return &map->items.back();
}

}  // namespace shoal::job
