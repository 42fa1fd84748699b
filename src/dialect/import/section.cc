#include "dialect/import/section.h"

#include <algorithm>

#include "job/units.h"

namespace shoal::dialect {
namespace {

using job::Node;

constexpr size_t kMostMissing = 2;  // letters of a misspelt name
constexpr int kMostUnknown = 100;   // fields of one section that are told of

std::string List(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// A whole number as YAML and JSON write it; 2.0 too, as some writers of JSON do.
std::optional<int64_t> WholeNumber(const std::string& text) {
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

// A flag that says what holds without it says nothing: false, or true where the table's example is
// false.
bool SaysNothing(const ForeignField& field, const Node& value) {
  if (value.kind == Node::Kind::kNull) return true;
  if (value.kind != Node::Kind::kScalar) return value.items.empty();
  return field.type == "flag" && value.text == (field.example == "false" ? "true" : "false");
}

}  // namespace

void Notes::Wrong(const job::Place& place, const std::string& field, const std::string& sentence) {
  errors_->Add(place, field, sentence);
}

void Notes::Lose(const job::Place& place, const std::string& field, const std::string& sentence,
                 const std::string& at) {
  losses_.push_back({place, field, sentence, at, false, ""});
}

void Notes::Mention(const job::Place& place, const std::string& field, const std::string& sentence,
                    const std::string& at) {
  losses_.push_back({place, field, sentence, at, true, ""});
}

const Node* Section::Take(const std::string& name) {
  asked_.insert(name);
  const Node* found = node_->Find(name);
  return found == nullptr || found->kind == Node::Kind::kNull ? nullptr : found;
}

bool Section::Has(const std::string& name) const {
  const Node* found = node_->Find(name);
  return found != nullptr && found->kind != Node::Kind::kNull;
}

std::optional<std::string> Section::Text(const std::string& name) {
  const Node* node = Take(name);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Node::Kind::kScalar) return node->text;
  Wrong(name, "got " + job::Tell(*node) + ", expected a text");
  return std::nullopt;
}

std::optional<int64_t> Section::Integer(const std::string& name, int64_t least, int64_t most) {
  const Node* node = Take(name);
  if (node == nullptr) return std::nullopt;
  const auto value = node->kind == Node::Kind::kScalar ? WholeNumber(node->text) : std::nullopt;
  if (value && *value >= least && *value <= most) return value;
  Wrong(name, "got " + job::Tell(*node) + ", expected an integer " + Bounds(least, most));
  return std::nullopt;
}

std::optional<double> Section::Number(const std::string& name, double least, double most) {
  const Node* node = Take(name);
  if (node == nullptr) return std::nullopt;
  const auto value =
      node->kind == Node::Kind::kScalar ? job::ParseNumber(node->text) : std::nullopt;
  if (value && *value >= least && *value <= most) return value;
  Wrong(name, "got " + job::Tell(*node) + ", expected a number " +
                  Bounds(static_cast<int64_t>(least), static_cast<int64_t>(most)));
  return std::nullopt;
}

std::optional<bool> Section::Flag(const std::string& name) {
  const Node* node = Take(name);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Node::Kind::kScalar && (node->text == "true" || node->text == "false")) {
    return node->text == "true";
  }
  Wrong(name, "got " + job::Tell(*node) + ", expected true or false");
  return std::nullopt;
}

std::optional<std::string> Section::Choice(const std::string& name,
                                           std::vector<std::string> choices) {
  const auto text = Text(name);
  if (text && text->empty()) return std::nullopt;
  if (!text || std::find(choices.begin(), choices.end(), *text) != choices.end()) return text;
  Wrong(name, "got " + job::Shown(*text) + ", expected one of " + List(choices) +
                  job::DidYouMean(*text, choices));
  return std::nullopt;
}

std::vector<std::string> Section::Texts(const std::string& name) {
  const Node* node = Take(name);
  std::vector<std::string> texts;
  if (node == nullptr) return texts;
  if (node->kind != Node::Kind::kList) {
    Wrong(name, "got " + job::Tell(*node) + ", expected a list of texts");
    return texts;
  }
  for (const Node& item : node->items) {
    if (item.kind == Node::Kind::kScalar || item.kind == Node::Kind::kNull) {
      texts.push_back(item.text);
    } else {
      notes_->Wrong(item.place, PathOf(name), "got " + job::Tell(item) + ", expected a text");
    }
  }
  return texts;
}

std::optional<Section> Section::Sub(const std::string& name) {
  const Node* node = Take(name);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Node::Kind::kMap) return Section(*node, PathOf(name), at_, notes_);
  Wrong(name, "got " + job::Tell(*node) + ", expected a section of fields");
  return std::nullopt;
}

std::vector<Section> Section::Subs(const std::string& name) {
  const Node* node = Take(name);
  std::vector<Section> sections;
  if (node == nullptr) return sections;
  if (node->kind != Node::Kind::kList) {
    Wrong(name, "got " + job::Tell(*node) + ", expected a list of sections");
    return sections;
  }
  for (size_t i = 0; i < node->items.size(); ++i) {
    const std::string path = PathOf(name) + "[" + std::to_string(i) + "]";
    if (node->items[i].kind == Node::Kind::kMap) {
      sections.emplace_back(node->items[i], path, at_, notes_);
    } else {
      notes_->Wrong(node->items[i].place, path,
                    "got " + job::Tell(node->items[i]) + ", expected a section of fields");
    }
  }
  return sections;
}

std::vector<std::pair<job::Key, const Node*>> Section::All() {
  std::vector<std::pair<job::Key, const Node*>> all;
  for (size_t i = 0; i < node_->keys.size(); ++i) {
    asked_.insert(node_->keys[i].text);
    all.emplace_back(node_->keys[i], &node_->items[i]);
  }
  return all;
}

std::vector<std::string> Section::Names() const {
  std::vector<std::string> names;
  for (const job::Key& key : node_->keys) names.push_back(key.text);
  return names;
}

void Section::Rest(std::string_view definition, std::span<const Unkept> older) {
  const std::span<const ForeignField> fields = FieldsOf(definition);
  int unknown = 0;
  for (size_t i = 0; i < node_->keys.size(); ++i) {
    const std::string& name = node_->keys[i].text;
    const Node& value = node_->items[i];
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const ForeignField& one) { return one.name == name; });
    if (field != fields.end()) {
      TellField(*field, value);
      continue;
    }
    if (asked_.contains(name) || value.kind == Node::Kind::kNull) continue;
    const auto known = std::find_if(older.begin(), older.end(),
                                    [&](const Unkept& one) { return one.name == name; });
    if (known != older.end()) {
      TellUnkept(name, value, known->meant, known->instead, known->minor);
    } else if (++unknown <= kMostUnknown) {
      TellUnknown(i, fields, older);
    }
  }
}

void Section::TellUnkept(const std::string& name, const Node& value, std::string_view meant,
                         std::string_view instead, bool minor) {
  const std::string got = value.kind == Node::Kind::kScalar ? job::Shown(value.text) : "it";
  Lose(name, got + " said " + std::string(meant) + "; not kept: " + std::string(instead), minor);
}

// A field of the table, read or not.
void Section::TellField(const ForeignField& field, const Node& value) {
  if (SaysNothing(field, value)) return;
  const std::string name(field.name);
  const std::string sentence(field.sentence);
  const bool read = asked_.contains(name);
  if (!field.engine.empty() && !field.tells_itself && read) {
    return KeepFor(
        std::string(field.engine), name,
        sentence + "; other engines than " + std::string(field.engine) + " do not heed it",
        !field.told_elsewhere);
  }
  if (read) return;
  const size_t cut = sentence.find("; ");
  if (field.verdict == Verdict::kRefused) {
    Wrong(name, "got " + job::Tell(value) + ", expected none of it: " + sentence);
  } else if (cut != std::string::npos &&
             (field.verdict == Verdict::kTold || field.verdict == Verdict::kMentioned)) {
    TellUnkept(name, value, sentence.substr(0, cut), sentence.substr(cut + 2),
               field.verdict == Verdict::kMentioned);
  } else {
    Lose(name, "not kept: it does not count here");
  }
}

void Section::TellUnknown(size_t index, std::span<const ForeignField> fields,
                          std::span<const Unkept> older) {
  const std::string& name = node_->keys[index].text;
  std::vector<std::string> names(asked_.begin(), asked_.end());
  for (const ForeignField& field : fields) names.emplace_back(field.name);
  for (const Unkept& field : older) names.emplace_back(field.name);
  // A new field of a later version often begins as an older one does; a misspelt one has its
  // length.
  const std::string nearest = job::Nearest(name, names);
  const size_t longer = std::max(nearest.size(), name.size());
  if (!nearest.empty() && longer - std::min(nearest.size(), name.size()) <= kMostMissing) {
    notes_->Wrong(
        node_->keys[index].place, path_,
        "got the unknown field " + job::Shown(name) + "; did you mean '" + nearest + "'?");
  } else {
    Lose(name, "this field is not known here; not kept: nothing in a job file stands for it");
  }
}

void Section::KeepFor(const std::string& engine, const std::string& name,
                      const std::string& sentence, bool minor) {
  notes_->Add({PlaceOf(name), PathOf(name), sentence, at_, minor, engine});
}

void Section::Wrong(const std::string& name, const std::string& sentence) {
  notes_->Wrong(PlaceOf(name), PathOf(name), sentence);
}

void Section::Lose(const std::string& name, const std::string& sentence, bool minor) {
  if (minor) {
    notes_->Mention(PlaceOf(name), PathOf(name), sentence, at_);
  } else {
    notes_->Lose(PlaceOf(name), PathOf(name), sentence, at_);
  }
}

std::string Section::PathOf(const std::string& name) const {
  return path_.empty() || name.empty() ? path_ + name : path_ + "." + name;
}

job::Place Section::PlaceOf(const std::string& name) const {
  const Node* node = node_->Find(name);
  return node != nullptr ? node->place : node_->place;
}

}  // namespace shoal::dialect
