#include "job/text/yaml_tree.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <initializer_list>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <streambuf>
#include <utility>

#include "base/utf8.h"

namespace shoal::job {
namespace {

constexpr size_t kShownBytes = 60;
constexpr std::string_view kYamlTag = "tag:yaml.org,2002:";  // of YAML's own types
constexpr size_t kMaxDocuments = 100;

SourceLocation At(const YAML::Mark& mark, int set) { return {mark.line + 1, mark.column + 1, set}; }

int CountNodes(const Node& node) {
  int count = 1;
  for (const Node& item : node.items) count += CountNodes(item);
  return count;
}

size_t CountBytes(const Node& node) {
  size_t bytes = node.text.size();
  for (const Key& key : node.keys) bytes += key.text.size();
  for (const Node& item : node.items) bytes += CountBytes(item);
  return bytes;
}

int DepthOf(const Node& node) {
  int depth = 0;
  for (const Node& item : node.items) depth = std::max(depth, DepthOf(item));
  return depth + 1;
}

// Builds the tree from the parser's events. After the first error it ignores the rest.
class Builder final : public YAML::EventHandler {
 public:
  Builder(int set, bool merges, Errors* errors) : set_(set), merges_(merges), errors_(errors) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override { anchors_.clear(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Leaf(mark, anchor, Node::Kind::kNull, {}, false);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted =
        tag == "!" || (merges_ && tag.starts_with(kYamlTag) && tag.ends_with(":str"));
    if (!HasNoTag(mark, tag, {"str", "int", "bool", "float", "null"})) return;
    if (!IsText(value)) {
      return Fail(mark, "got " + PrintableText(value) + ", expected a text of UTF-8 without NUL");
    }
    const bool null = !quoted && (value == "~" || value == "null" || value.empty());
    Leaf(mark, anchor, null ? Node::Kind::kNull : Node::Kind::kScalar, value, quoted);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    if (HasNoTag(mark, tag, {"seq"})) Open(mark, anchor, Node::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    if (HasNoTag(mark, tag, {"map"})) Open(mark, anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

  // The most recently completed document.
  Node TakeRoot() { return std::exchange(root_, Node{}); }
  bool failed() const { return failed_; }

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<Key> key;           // of a map: read, its value not yet
    std::map<std::string, int> seen;  // of a map: field → line
    bool skip = false;                // the key was a duplicate: drop the value
  };

  void Fail(const YAML::Mark& mark, const std::string& sentence) {
    if (!failed_) errors_->Add(At(mark, set_), "", sentence);
    failed_ = true;
  }
  // Files of other systems may name YAML's own types, `usual`.
  bool HasNoTag(const YAML::Mark& mark, const std::string& tag,
                std::initializer_list<std::string_view> usual) {
    if (tag.empty() || tag == "?" || tag == "!") return true;
    if (merges_ && tag.starts_with(kYamlTag)) {
      const auto type = std::string_view(tag).substr(kYamlTag.size());
      if (std::find(usual.begin(), usual.end(), type) != usual.end()) return true;
    }
    Fail(mark, "got the YAML tag " + PrintableText(tag) + ", expected plain values without tags");
    return false;
  }
  bool Spend(const YAML::Mark& mark, int nodes, size_t bytes) {
    nodes_ += nodes;
    bytes_ += bytes;
    if (bytes_ > kMaxTreeBytes) {
      Fail(mark, "got more than " + std::to_string(kMaxTreeBytes) +
                     " bytes of values, aliases expanded, expected a job file of fewer");
    }
    if (nodes_ > kMaxNodes) {
      Fail(mark, "got more than " + std::to_string(kMaxNodes) +
                     " values, aliases expanded, expected a job file of fewer");
    }
    return !failed_;
  }
  void Leaf(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind,
            const std::string& value, bool quoted);
  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind);
  void Close();
  void Attach(Node node, YAML::anchor_t anchor);
  void TakeKey(Node node);
  void Merge(Node* map);

  const int set_;
  const bool merges_;  // "<<" is YAML's merge key
  Errors* const errors_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  Node root_;
  int nodes_ = 0;
  size_t bytes_ = 0;
  bool failed_ = false;
};

void Builder::Leaf(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind,
                   const std::string& value, bool quoted) {
  if (failed_ || !Spend(mark, 1, value.size())) return;
  Node node;
  node.kind = kind;
  node.quoted = quoted;
  node.place = At(mark, set_);
  if (kind == Node::Kind::kScalar) node.text = value;
  Attach(std::move(node), anchor);
}

void Builder::Open(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind) {
  if (failed_ || !Spend(mark, 1, 0)) return;
  if (stack_.size() >= static_cast<size_t>(kMaxDepth)) {
    return Fail(mark, "got values nested more than " + std::to_string(kMaxDepth) +
                          " deep, expected fewer levels");
  }
  Frame frame;
  frame.node.kind = kind;
  frame.node.place = At(mark, set_);
  frame.anchor = anchor;
  stack_.push_back(std::move(frame));
}

void Builder::Close() {
  if (failed_ || stack_.empty()) return;
  Frame frame = std::move(stack_.back());
  stack_.pop_back();
  if (merges_ && frame.seen.contains("<<")) Merge(&frame.node);
  if (failed_) return;
  Attach(std::move(frame.node), frame.anchor);
}

void Builder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  if (failed_) return;
  const auto known = anchors_.find(anchor);
  if (known == anchors_.end()) {
    return Fail(mark, "got an alias of a value that contains it, expected one that is complete");
  }
  if (!Spend(mark, CountNodes(known->second), CountBytes(known->second))) return;
  if (stack_.size() + static_cast<size_t>(DepthOf(known->second)) > kMaxDepth) {
    return Fail(mark, "got values nested more than " + std::to_string(kMaxDepth) +
                          " deep, expected fewer levels");
  }
  Attach(known->second, 0);
}

void Builder::Attach(Node node, YAML::anchor_t anchor) {
  if (anchor != 0) {
    nodes_ += CountNodes(node);
    bytes_ += CountBytes(node);
    anchors_[anchor] = node;
  }
  if (stack_.empty()) {
    root_ = std::move(node);
    return;
  }
  Frame& top = stack_.back();
  if (top.node.kind == Node::Kind::kList) {
    top.node.items.push_back(std::move(node));
  } else if (!top.key) {
    TakeKey(std::move(node));
  } else {
    // The parser reports an empty node at the location of the next token.
    if (node.kind == Node::Kind::kNull) node.place = top.key->place;
    if (!top.skip) {
      top.node.keys.push_back(std::move(*top.key));
      top.node.items.push_back(std::move(node));
    }
    top.key.reset();
  }
}

// The map's own fields take precedence, then those of earlier maps in the list.
void Builder::Merge(Node* map) {
  const auto at = std::find_if(map->keys.begin(), map->keys.end(),
                               [](const Key& key) { return key.text == "<<"; });
  const auto number = at - map->keys.begin();
  Node source = std::move(map->items[static_cast<size_t>(number)]);
  map->keys.erase(at);
  map->items.erase(map->items.begin() + number);
  std::vector<Node> sources;
  if (source.kind == Node::Kind::kList) {
    sources = std::move(source.items);
  } else {
    sources.push_back(std::move(source));
  }
  std::set<std::string> known;
  for (const Key& key : map->keys) known.insert(key.text);
  for (Node& one : sources) {
    if (one.kind != Node::Kind::kMap) {
      errors_->Add(one.place, "",
                   "got " + DescribeNode(one) +
                       " to merge by '<<', expected a section of fields or a list "
                       "of such");
      failed_ = true;
      return;
    }
    for (size_t i = 0; i < one.keys.size(); ++i) {
      if (!known.insert(one.keys[i].text).second) continue;
      map->keys.push_back(std::move(one.keys[i]));
      map->items.push_back(std::move(one.items[i]));
    }
  }
}

void Builder::TakeKey(Node node) {
  Frame& top = stack_.back();
  if (node.kind != Node::Kind::kScalar) {
    errors_->Add(node.place, "",
                 "got " + DescribeNode(node) + " as the name of a field, expected a word");
    failed_ = true;
    return;
  }
  top.skip = false;
  const auto [known, is_new] = top.seen.emplace(node.text, node.place.line);
  if (!is_new) {
    errors_->Add(node.place, "",
                 "got the field " + PrintableText(node.text) +
                     " a second time, expected it once; line " + std::to_string(known->second) +
                     " has it already");
    top.skip = true;
  }
  top.key = Key{std::move(node.text), node.place};
}

// A stream buffer over the text, without copying it.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // never written: only the get area is set
    setg(begin, begin, begin + text.size());
  }
};

// Checks bytes and encoding before parsing.
bool CheckBytes(std::string_view text, int set, Errors* errors) {
  SourceLocation place{1, 1, set};
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = Utf8Length(text.substr(i));
    const bool control =
        (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f;
    if (length == 0 || control) {
      char shown[16];
      std::snprintf(shown, sizeof shown, "0x%02x", byte);
      errors->Add(place, "",
                  control ? "got the control character " + std::string(shown) +
                                ", expected text; this looks like a binary file"
                          : "got the byte " + std::string(shown) +
                                ", which is not UTF-8; save the file as UTF-8");
      return false;
    }
    place.column = byte == '\n' ? 1 : place.column + 1;
    place.line += byte == '\n' ? 1 : 0;
    i += length;
  }
  return true;
}

// First line up to `last` (1-based) indented by a tab; column 0 if there is none.
SourceLocation FindTab(std::string_view text, int last, int set) {
  int line = 1;
  size_t begin = 0;
  while (begin < text.size() && line <= last) {
    const size_t stop = text.find_first_not_of(" ", begin);
    if (stop != std::string_view::npos && text[stop] == '\t') {
      return {line, static_cast<int>(stop - begin) + 1, set};
    }
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) break;
    ++begin;
    ++line;
  }
  return {0, 0, set};
}

void AddSyntaxError(std::string_view text, const YAML::Exception& error, int set, Errors* errors) {
  const SourceLocation place = At(error.mark, set);
  const SourceLocation tab = FindTab(text, place.line + 1, set);
  if (tab.column > 0) {
    errors->Add(tab, "", "got a tab in the indentation, expected spaces");
    return;
  }
  errors->Add(
      place, "",
      "this is not valid YAML (" + error.msg +
          "); check the indentation here and above, and that brackets and quotes are closed");
}

// The value of "\\uXXXX" at the begin of the text, or -1.
int EscapedUnit(std::string_view text) {
  if (text.size() < 6 || !text.starts_with("\\u")) return -1;
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data() + 2, text.data() + 6, value, 16);
  return error == std::errc() && stop == text.data() + 6 ? value : -1;
}

// JSON escapes a character beyond U+FFFF as a pair of surrogates ("\\ud83d\\ude00"), which YAML
// does not have: puts the characters in their place. Columns behind them in the same line move.
std::string JoinSurrogates(std::string_view text) {
  std::string joined;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      joined += text[at++];
      continue;
    }
    const int high = EscapedUnit(text.substr(at));
    const bool pair = high >= 0xd800 && high < 0xdc00;
    const int low = pair && at + 6 < text.size() ? EscapedUnit(text.substr(at + 6)) : -1;
    if (low < 0xdc00 || low >= 0xe000) {
      joined += text.substr(at, 2);
      at += std::min<size_t>(2, text.size() - at);
      continue;
    }
    const int code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    joined += static_cast<char>(0xf0 | (code >> 18));
    joined += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    joined += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    joined += static_cast<char>(0x80 | (code & 0x3f));
    at += 12;
  }
  return joined;
}

// Parses at most `most` documents; an empty list after an error.
std::vector<Node> Parse(std::string_view text, int set, size_t most, Errors* errors) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    errors->Add({1, 1, set}, "", "got UTF-16 text, expected UTF-8; save the file as UTF-8");
    return {};
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (!CheckBytes(text, set, errors)) return {};
  std::string joined;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && (text[first] == '{' || text[first] == '[')) {
    joined = JoinSurrogates(text);
    text = joined;
  }
  ViewBuffer buffer(text);
  std::istream stream(&buffer);
  Builder builder(set, most > 1, errors);
  std::vector<Node> documents;
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
      if (builder.failed()) return {};
      if (documents.size() < most) {
        documents.push_back(builder.TakeRoot());
        continue;
      }
      errors->Add(
          {1, 1, set}, "",
          most == 1
              ? "got more than one YAML document, expected one job here; `shoal submit` takes "
                "several"
              : "got more than " + std::to_string(most) +
                    " YAML documents, expected a file with one job");
      return {};
    }
    return documents;
  } catch (const YAML::Exception& error) {
    if (!builder.failed()) AddSyntaxError(text, error, set, errors);
  } catch (const std::exception& error) {
    errors->Add({0, 0, set}, "", "this cannot be read as YAML: " + std::string(error.what()));
  }
  return {};
}

}  // namespace

Node* Node::Find(std::string_view key) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) return &items[i];
  }
  return nullptr;
}

const Node* Node::Find(std::string_view key) const { return const_cast<Node*>(this)->Find(key); }

Node ParseYaml(std::string_view text, int set, Errors* errors) {
  std::vector<Node> documents = Parse(text, set, 1, errors);
  return documents.empty() ? Node{} : std::move(documents[0]);
}

std::vector<Node> ParseYamlDocuments(std::string_view text, Errors* errors) {
  return Parse(text, -1, kMaxDocuments, errors);
}

bool IsText(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = text[i] == '\0' ? 0 : Utf8Length(text.substr(i));
    if (length == 0) return false;
    i += length;
  }
  return true;
}

// Longer texts are cut at kShownBytes; control characters and invalid bytes are escaped.
std::string PrintableText(std::string_view text) {
  std::string out = "'";
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = Utf8Length(text.substr(i));
    if (out.size() > kShownBytes) {
      out += "...";
      break;
    }
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : escape;
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out + "'";
}

std::string DescribeNode(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return node.quoted ? "the text " + PrintableText(node.text) : PrintableText(node.text);
    case Node::Kind::kList:
      return node.items.empty() ? "an empty list" : "a list";
    case Node::Kind::kMap:
      return "a section of fields";
  }
  return "nothing";
}

}  // namespace shoal::job
