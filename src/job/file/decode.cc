#include "job/file/decode.h"

#include <algorithm>

#include "job/file/parse.h"

namespace shoal::job {
namespace {

constexpr size_t kMaxSections = 256;  // roles, data sets

std::string Dotted(std::string_view prefix, std::string_view name) {
  return prefix.empty() ? std::string(name) : std::string(prefix) + "." + std::string(name);
}

// "roles.*.resources" → "roles.NAME.resources".
std::string ForPeople(std::string_view pattern) {
  std::string out;
  for (const char c : pattern) out += c == '*' ? std::string("NAME") : std::string(1, c);
  return out;
}

// The section that has a field of this name, to suggest it for "memory" written one level too high.
std::string SectionOf(std::string_view name) {
  for (const Field& field : Fields()) {
    const size_t dot = field.path.rfind('.');
    const std::string_view leaf =
        dot == std::string_view::npos ? field.path : field.path.substr(dot + 1);
    if (leaf != name) continue;
    return dot == std::string_view::npos ? "the top of the file"
                                         : ForPeople(field.path.substr(0, dot));
  }
  return {};
}

class Decoder {
 public:
  Decoder(const Node& root, JobDraft* draft, Errors* errors)
      : root_(root), draft_(draft), errors_(errors) {}

  // Decodes the fields of one section: `pattern` is its path in the table, `path` its path in the
  // file.
  void Section(const Node& node, std::string_view pattern, const std::string& path,
               const Target& target);

 private:
  void OneField(const Field& field, const Node& node, const std::string& path,
                const Target& target);
  void Sections(const Field& field, const Node& node, const std::string& path);
  void OneSection(const Field& field, const Node& node, const std::string& path,
                  const Target& target);
  void Unknown(const Key& key, std::string_view pattern, const std::string& path);
  bool CheckName(const Field& field, const Node& all, const Key& key, const std::string& path);
  bool RefuseMisspelledRole(const Node& all, const Key& key) const;

  const Node& root_;
  JobDraft* const draft_;
  Errors* const errors_;
};

void Decoder::Section(const Node& node, std::string_view pattern, const std::string& path,
                      const Target& target) {
  if (node.kind == Node::Kind::kNull) return;
  if (node.kind != Node::Kind::kMap) {
    std::string names;
    for (const std::string& name : FieldsBelow(pattern)) {
      names += (names.empty() ? "" : ", ") + name;
    }
    errors_->Add(node.place, path,
                 "got " + DescribeNode(node) + ", expected a section of the fields " + names);
    return;
  }
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const Key& key = node.keys[i];
    const Field* field = key.text == "*" ? nullptr : FindField(Dotted(pattern, key.text));
    if (field == nullptr) {
      Unknown(key, pattern, path);
      continue;
    }
    const std::string field_path = Dotted(path, key.text);
    const bool section = field->type == Type::kSection || field->type == Type::kSections;
    draft_->places.at[field_path] = section ? key.place : node.items[i].place;
    OneField(*field, node.items[i], field_path, target);
  }
}

void Decoder::OneField(const Field& field, const Node& node, const std::string& path,
                       const Target& target) {
  if (field.type == Type::kSection) return Section(node, field.path, path, target);
  if (field.type == Type::kSections) return Sections(field, node, path);
  Value value;
  if (!ReadValue(field, node, path, &value, errors_)) return;
  field.apply(value, target);
  if (field.type != Type::kTextMap) return;
  for (size_t i = 0; i < node.keys.size(); ++i)
    draft_->places.at[Dotted(path, node.keys[i].text)] = node.items[i].place;
}

void Decoder::Sections(const Field& field, const Node& node, const std::string& path) {
  if (node.kind == Node::Kind::kNull) return;
  if (node.kind != Node::Kind::kMap) {
    errors_->Add(node.place, path,
                 "got " + DescribeNode(node) + ", expected named sections, such as {" +
                     (field.path == "roles" ? "worker: {replicas: 4}}" : "train: {source: PATH}}"));
    return;
  }
  if (node.keys.size() > kMaxSections) {
    errors_->Add(node.place, path,
                 "got " + std::to_string(node.keys.size()) + " sections, expected at most " +
                     std::to_string(kMaxSections));
    return;
  }
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const Key& key = node.keys[i];
    if (!CheckName(field, node, key, path)) continue;
    const std::string section_path = Dotted(path, key.text);
    draft_->places.at[section_path] = key.place;
    Role role;
    DataSource data;
    role.name = key.text;
    data.name = key.text;
    OneSection(field, node.items[i], section_path, {&draft_->job, &role, &data});
    if (field.path == "roles") {
      draft_->job.roles.push_back(std::move(role));
    } else {
      draft_->job.data.push_back(std::move(data));
    }
  }
}

void Decoder::OneSection(const Field& field, const Node& node, const std::string& path,
                         const Target& target) {
  const std::string pattern = std::string(field.path) + ".*";
  if (node.kind != Node::Kind::kScalar && node.kind != Node::Kind::kList) {
    return Section(node, pattern, path, target);
  }
  const std::string shorthand_path = Dotted(path, field.shorthand);
  draft_->places.at[shorthand_path] = node.place;
  OneField(*FindField(Dotted(pattern, field.shorthand)), node, shorthand_path, target);
}

bool Decoder::CheckName(const Field& field, const Node& all, const Key& key,
                        const std::string& path) {
  if (!IsPlainName(key.text, kMaxPlainName)) {
    errors_->Add(key.place, path,
                 "got the name " + PrintableText(key.text) +
                     ", expected lower-case letters, digits and '-', a letter first, at most " +
                     std::to_string(kMaxPlainName));
    return false;
  }
  if (field.path != "roles") return true;
  if (key.text == "coordinator") {
    errors_->Add(key.place, path,
                 "got the role name 'coordinator', which is taken by the job's own coordinator; "
                 "choose another");
    return false;
  }
  if (!RefuseMisspelledRole(all, key)) return true;
  std::vector<std::string> names;
  std::string list;
  for (const Key& other : all.keys) {
    if (other.place.set >= 0) continue;
    names.push_back(other.text);
    list += (list.empty() ? "" : ", ") + other.text;
  }
  errors_->Add(key.place, path,
               "got the unknown role " + PrintableText(key.text) +
                   ", expected one of the file's: " + list + DidYouMean(key.text, names));
  return false;
}

// --set may create a role only if the file names no roles, or if the framework defines it.
bool Decoder::RefuseMisspelledRole(const Node& all, const Key& key) const {
  if (key.place.set < 0) return false;
  const Node* framework = root_.Find("framework");
  const bool shoal = framework != nullptr && framework->text == "shoal";
  if (shoal && (key.text == "server" || key.text == "worker")) return false;
  for (const Key& other : all.keys) {
    if (other.place.set < 0) return true;
  }
  return false;
}

void Decoder::Unknown(const Key& key, std::string_view pattern, const std::string& path) {
  if (key.text == "<<") {
    errors_->Add(key.place, path, "got a merge key '<<', expected the fields written out");
    return;
  }
  const std::vector<std::string> names = FieldsBelow(pattern);
  std::string sentence = "got the unknown field " + PrintableText(key.text);
  const std::string elsewhere = SectionOf(key.text);
  const std::string meant = DidYouMean(key.text, names);
  const bool plural = std::find(names.begin(), names.end(), key.text + "s") != names.end();
  if (!elsewhere.empty() && elsewhere.find('.') != std::string::npos && !plural) {
    sentence += "; it belongs into " + elsewhere;
  } else if (!meant.empty()) {
    sentence += meant;
  } else if (!elsewhere.empty()) {
    sentence += "; it belongs into " + elsewhere;
  } else {
    sentence += ", expected one of ";
    for (size_t i = 0; i < names.size(); ++i) sentence += (i > 0 ? ", " : "") + names[i];
  }
  errors_->Add(key.place, path, sentence);
}

}  // namespace

void Decode(const Node& root, JobDraft* draft, Errors* errors) {
  if (root.kind == Node::Kind::kNull) {
    errors->Add({1, 1, -1}, "",
                "the file is empty, expected a job: at least a command, or framework shoal with "
                "learn");
    return;
  }
  if (root.kind != Node::Kind::kMap) {
    errors->Add(root.place, "",
                "got " + DescribeNode(root) + ", expected fields such as name, command and roles");
    return;
  }
  Decoder(root, draft, errors).Section(root, "", "", {&draft->job, nullptr, nullptr});
}

}  // namespace shoal::job
