#include "import/conversion/field_reader.h"

#include <algorithm>

#include "job/text/units.h"

namespace shoal::importer {
namespace {

using job::Node;

constexpr size_t kMostMissing = 2;  // edit distance of a likely misspelling
constexpr int kMostUnknown = 100;   // unknown fields of one mapping that are reported

std::string List(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// A whole number in YAML or JSON, including 2.0, which some JSON writers produce. 010 is none:
// kubectl's YAML 1.1 reads it as 8.
std::optional<int64_t> WholeNumber(const std::string& text) {
  if (text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9') return std::nullopt;
  if (const auto integer = job::ParseInteger(text)) return integer;
  const auto number = job::ParseNumber(text);
  if (!number || *number < -1e15 || *number > 1e15) return std::nullopt;
  const auto whole = static_cast<int64_t>(*number);
  if (static_cast<double>(whole) != *number) return std::nullopt;
  return whole;
}

std::string Bounds(int64_t least, int64_t most) {
  return "from " + std::to_string(least) + " to " + std::to_string(most);
}

// A value equal to the default needs no report: null, an empty list or mapping, and a flag with the
// default value (false, or true where the table's example is false).
bool SaysNothing(const ForeignField& field, const Node& value) {
  if (value.kind == Node::Kind::kNull) return true;
  if (value.kind != Node::Kind::kScalar) return value.items.empty();
  return field.type == "flag" && value.text == (field.example == "false" ? "true" : "false");
}

}  // namespace

std::string HintForVariable(std::string_view value) {
  if (!value.starts_with('$')) return "";
  return "; `envsubst < FILE | shoal run -` puts in the values of variables";
}

const Node* FieldReader::ReadNode(const std::string& name) {
  asked_.insert(name);
  const Node* found = node_->Find(name);
  return found == nullptr || found->kind == Node::Kind::kNull ? nullptr : found;
}

bool FieldReader::HasField(const std::string& name) const {
  const Node* found = node_->Find(name);
  return found != nullptr && found->kind != Node::Kind::kNull;
}

std::optional<std::string> FieldReader::ReadText(const std::string& name) {
  const Node* node = ReadNode(name);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Node::Kind::kScalar) return node->text;
  AddError(name, "got " + job::DescribeNode(*node) + ", expected a text");
  return std::nullopt;
}

std::optional<int64_t> FieldReader::ReadInteger(const std::string& name, int64_t least,
                                                int64_t most) {
  const Node* node = ReadNode(name);
  if (node == nullptr) return std::nullopt;
  const auto value = node->kind == Node::Kind::kScalar ? WholeNumber(node->text) : std::nullopt;
  if (value && *value >= least && *value <= most) return value;
  AddError(name, "got " + job::DescribeNode(*node) + ", expected an integer " +
                     Bounds(least, most) + HintForVariable(node->text));
  return std::nullopt;
}

std::optional<double> FieldReader::ReadNumber(const std::string& name, double least, double most) {
  const Node* node = ReadNode(name);
  if (node == nullptr) return std::nullopt;
  const auto value =
      node->kind == Node::Kind::kScalar ? job::ParseNumber(node->text) : std::nullopt;
  if (value && *value >= least && *value <= most) return value;
  AddError(name, "got " + job::DescribeNode(*node) + ", expected a number " +
                     Bounds(static_cast<int64_t>(least), static_cast<int64_t>(most)));
  return std::nullopt;
}

std::optional<bool> FieldReader::ReadFlag(const std::string& name) {
  const Node* node = ReadNode(name);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Node::Kind::kScalar && (node->text == "true" || node->text == "false")) {
    return node->text == "true";
  }
  AddError(name, "got " + job::DescribeNode(*node) + ", expected true or false");
  return std::nullopt;
}

std::optional<std::string> FieldReader::ReadChoice(const std::string& name,
                                                   std::vector<std::string> choices) {
  const auto text = ReadText(name);
  if (text && text->empty()) return std::nullopt;
  if (!text || std::find(choices.begin(), choices.end(), *text) != choices.end()) return text;
  AddError(name, "got " + job::PrintableText(*text) + ", expected one of " + List(choices) +
                     job::DidYouMean(*text, choices));
  return std::nullopt;
}

std::vector<std::string> FieldReader::ReadTexts(const std::string& name) {
  const Node* node = ReadNode(name);
  std::vector<std::string> texts;
  if (node == nullptr) return texts;
  if (node->kind != Node::Kind::kList) {
    AddError(name, "got " + job::DescribeNode(*node) + ", expected a list of texts");
    return texts;
  }
  for (const Node& item : node->items) {
    if (item.kind == Node::Kind::kScalar || item.kind == Node::Kind::kNull) {
      texts.push_back(item.text);
    } else {
      diagnostics_->AddError(item.place, PathOf(name),
                             "got " + job::DescribeNode(item) + ", expected a text");
    }
  }
  return texts;
}

std::optional<FieldReader> FieldReader::ReadObject(const std::string& name) {
  const Node* node = ReadNode(name);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Node::Kind::kMap) return FieldReader(*node, PathOf(name), at_, diagnostics_);
  AddError(name, "got " + job::DescribeNode(*node) + ", expected a section of fields");
  return std::nullopt;
}

std::vector<FieldReader> FieldReader::ReadObjects(const std::string& name) {
  const Node* node = ReadNode(name);
  std::vector<FieldReader> sections;
  if (node == nullptr) return sections;
  if (node->kind != Node::Kind::kList) {
    AddError(name, "got " + job::DescribeNode(*node) + ", expected a list of sections");
    return sections;
  }
  for (size_t i = 0; i < node->items.size(); ++i) {
    const std::string path = PathOf(name) + "[" + std::to_string(i) + "]";
    if (node->items[i].kind == Node::Kind::kMap) {
      sections.emplace_back(node->items[i], path, at_, diagnostics_);
    } else {
      diagnostics_->AddError(
          node->items[i].place, path,
          "got " + job::DescribeNode(node->items[i]) + ", expected a section of fields");
    }
  }
  return sections;
}

std::vector<std::pair<job::Key, const Node*>> FieldReader::ReadAll() {
  std::vector<std::pair<job::Key, const Node*>> all;
  for (size_t i = 0; i < node_->keys.size(); ++i) {
    asked_.insert(node_->keys[i].text);
    all.emplace_back(node_->keys[i], &node_->items[i]);
  }
  return all;
}

std::vector<std::string> FieldReader::Names() const {
  std::vector<std::string> names;
  for (const job::Key& key : node_->keys) names.push_back(key.text);
  return names;
}

void FieldReader::ReportUnread(std::string_view definition,
                               std::span<const UnsupportedField> older) {
  const std::span<const ForeignField> fields = FindFields(definition);
  int unknown = 0;
  for (size_t i = 0; i < node_->keys.size(); ++i) {
    const std::string& name = node_->keys[i].text;
    const Node& value = node_->items[i];
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const ForeignField& one) { return one.name == name; });
    if (field != fields.end()) {
      ReportField(*field, value);
      continue;
    }
    if (asked_.contains(name) || value.kind == Node::Kind::kNull) continue;
    const auto known = std::find_if(older.begin(), older.end(),
                                    [&](const UnsupportedField& one) { return one.name == name; });
    if (known != older.end()) {
      ReportUnsupported(name, value, known->meant, known->instead, known->minor);
    } else if (++unknown <= kMostUnknown) {
      ReportUnknown(i, fields, older);
    }
  }
}

void FieldReader::ReportUnsupported(const std::string& name, const Node& value,
                                    std::string_view meant, std::string_view instead, bool minor) {
  const std::string got = value.kind == Node::Kind::kScalar ? job::PrintableText(value.text) : "it";
  AddLoss(name, got + " said " + std::string(meant) + "; not kept: " + std::string(instead), minor);
}

// Reports a field of the table according to its support and whether it was read.
void FieldReader::ReportField(const ForeignField& field, const Node& value) {
  if (SaysNothing(field, value)) return;
  const std::string name(field.name);
  const std::string sentence(field.sentence);
  const bool read = asked_.contains(name);
  if (!field.engine.empty() && !field.importer_reports && read) {
    return AddLossExceptOn(
        std::string(field.engine), name,
        sentence + "; other engines than " + std::string(field.engine) + " do not heed it",
        !field.warned_elsewhere);
  }
  if (read) return;
  const size_t cut = sentence.find("; ");
  if (field.verdict == FieldSupport::kRefused) {
    AddError(name, "got " + job::DescribeNode(value) + ", expected none of it: " + sentence);
  } else if (cut != std::string::npos &&
             (field.verdict == FieldSupport::kWarned || field.verdict == FieldSupport::kNoted)) {
    ReportUnsupported(name, value, sentence.substr(0, cut), sentence.substr(cut + 2),
                      field.verdict == FieldSupport::kNoted);
  } else {
    AddLoss(name, "not kept: it does not count here");
  }
}

void FieldReader::ReportUnknown(size_t index, std::span<const ForeignField> fields,
                                std::span<const UnsupportedField> older) {
  const std::string& name = node_->keys[index].text;
  std::vector<std::string> names(asked_.begin(), asked_.end());
  for (const ForeignField& field : fields) names.emplace_back(field.name);
  for (const UnsupportedField& field : older) names.emplace_back(field.name);
  // The lengths are compared because a new field of a later version often has an older field's name
  // as its prefix, while a misspelling has about the same length.
  const std::string nearest = job::Nearest(name, names);
  const size_t longer = std::max(nearest.size(), name.size());
  if (!nearest.empty() && longer - std::min(nearest.size(), name.size()) <= kMostMissing) {
    diagnostics_->AddError(
        node_->keys[index].place, path_,
        "got the unknown field " + job::PrintableText(name) + "; did you mean '" + nearest + "'?");
  } else {
    AddLoss(name, "this field is not known here; not kept: nothing in a job file stands for it");
  }
}

void FieldReader::AddLossExceptOn(const std::string& engine, const std::string& name,
                                  const std::string& sentence, bool minor) {
  diagnostics_->Add({PlaceOf(name), PathOf(name), sentence, at_, minor, engine});
}

void FieldReader::AddError(const std::string& name, const std::string& sentence) {
  diagnostics_->AddError(PlaceOf(name), PathOf(name), sentence);
}

void FieldReader::AddLoss(const std::string& name, const std::string& sentence, bool minor) {
  if (minor) {
    diagnostics_->AddMinorLoss(PlaceOf(name), PathOf(name), sentence, at_);
  } else {
    diagnostics_->AddLoss(PlaceOf(name), PathOf(name), sentence, at_);
  }
}

std::string FieldReader::PathOf(const std::string& name) const {
  return path_.empty() || name.empty() ? path_ + name : path_ + "." + name;
}

job::SourceLocation FieldReader::PlaceOf(const std::string& name) const {
  const Node* node = node_->Find(name);
  return node != nullptr ? node->place : node_->place;
}

}  // namespace shoal::importer
