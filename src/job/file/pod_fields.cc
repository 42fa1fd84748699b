#include "job/file/pod_fields.h"

#include <algorithm>
#include <vector>

#include "job/text/errors.h"
#include "job/text/units.h"

namespace shoal::job {
namespace {

// clang-format off
constexpr PodDefinition kDefinitions[] = {
  {"Affinity", "nodeAffinity=NodeAffinity podAffinity=PodAffinity podAntiAffinity=PodAntiAffinity"},
  {"NodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm] "
                   "requiredDuringSchedulingIgnoredDuringExecution=NodeSelector"},
  {"PreferredSchedulingTerm", "preference!=NodeSelectorTerm weight!=int"},
  {"NodeSelector", "nodeSelectorTerms!=[NodeSelectorTerm]"},
  {"NodeSelectorTerm", "matchExpressions=[NodeSelectorRequirement] matchFields=[NodeSelectorRequirement]"},
  {"NodeSelectorRequirement", "key!=text operator!=text values=[text]"},
  {"PodAffinity", "preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm] "
                  "requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]"},
  {"PodAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm] "
                      "requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]"},
  {"WeightedPodAffinityTerm", "podAffinityTerm!=PodAffinityTerm weight!=int"},
  {"PodAffinityTerm", "labelSelector=LabelSelector matchLabelKeys=[text] mismatchLabelKeys=[text] "
                      "namespaceSelector=LabelSelector namespaces=[text] topologyKey!=text"},
  {"TopologySpreadConstraint", "labelSelector=LabelSelector matchLabelKeys=[text] maxSkew!=int minDomains=int "
                               "nodeAffinityPolicy=text nodeTaintsPolicy=text topologyKey!=text whenUnsatisfiable!=text"},
  {"PodSecurityContext", "appArmorProfile=AppArmorProfile fsGroup=int fsGroupChangePolicy=text runAsGroup=int "
                         "runAsNonRoot=flag runAsUser=int seLinuxChangePolicy=text seLinuxOptions=SELinuxOptions "
                         "seccompProfile=SeccompProfile supplementalGroups=[int] supplementalGroupsPolicy=text "
                         "sysctls=[Sysctl]"},
  {"SecurityContext", "allowPrivilegeEscalation=flag appArmorProfile=AppArmorProfile capabilities=Capabilities "
                      "privileged=flag procMount=text readOnlyRootFilesystem=flag runAsGroup=int runAsNonRoot=flag "
                      "runAsUser=int seLinuxOptions=SELinuxOptions seccompProfile=SeccompProfile"},
  {"Capabilities", "add=[text] drop=[text]"},
  {"SeccompProfile", "localhostProfile=text type!=text"},
  {"AppArmorProfile", "localhostProfile=text type!=text"},
  {"SELinuxOptions", "level=text role=text type=text user=text"},
  {"Sysctl", "name!=text value!=text"},
  {"LabelSelector", "matchExpressions=[LabelSelectorRequirement] matchLabels={text}"},
  {"LabelSelectorRequirement", "key!=text operator!=text values=[text]"},
};
// clang-format on

struct PodField {
  std::string name;
  std::string_view type;
  bool required = false;
};

std::vector<PodField> FieldsOf(std::string_view definition) {
  std::vector<PodField> fields;
  for (const PodDefinition& one : kDefinitions) {
    if (one.name != definition) continue;
    for (size_t at = 0; at < one.fields.size();) {
      const size_t end = std::min(one.fields.find(' ', at), one.fields.size());
      const std::string_view word = one.fields.substr(at, end - at);
      const size_t is = word.find('=');
      const bool required = word[is - 1] == '!';
      fields.push_back(
          {std::string(word.substr(0, required ? is - 1 : is)), word.substr(is + 1), required});
      at = end + 1;
    }
  }
  return fields;
}

bool IsList(std::string_view type) { return type.starts_with('['); }
std::string_view Inside(std::string_view type) { return type.substr(1, type.size() - 2); }

std::string ExpectedOf(std::string_view type) {
  if (type == "text") return "a text";
  if (type == "int") return "an integer";
  if (type == "flag") return "true or false";
  if (type == "{text}") return "named texts";
  if (IsList(type)) return "a list, each of it " + ExpectedOf(Inside(type));
  std::string names;
  for (const PodField& field : FieldsOf(type)) names += (names.empty() ? "" : ", ") + field.name;
  return "a section of the fields " + names;
}

class Reader {
 public:
  explicit Reader(const PodErrorHandler& wrong) : wrong_(wrong) {}

  json::value Read(const Node& node, std::string_view type, const std::string& path) {
    if (IsList(type)) return List(node, type, path);
    if (type == "{text}") return Texts(node, path);
    if (type == "text" || type == "int" || type == "flag") return Scalar(node, type, path);
    return Section(node, type, path);
  }
  bool ok() const { return ok_; }

 private:
  json::value Wrong(const SourceLocation& place, const std::string& path,
                    const std::string& sentence) {
    ok_ = false;
    wrong_(place, path, sentence);
    return nullptr;
  }
  json::value Expected(const Node& node, std::string_view type, const std::string& path) {
    return Wrong(node.place, path, "got " + DescribeNode(node) + ", expected " + ExpectedOf(type));
  }

  json::value Scalar(const Node& node, std::string_view type, const std::string& path) {
    if (node.kind != Node::Kind::kScalar) return Expected(node, type, path);
    if (type == "text") return json::value(node.text);
    const bool yes = node.text == "true";
    if (type == "flag" && !node.quoted && (yes || node.text == "false")) return yes;
    const auto number = type == "int" && !node.quoted ? ParseInteger(node.text) : std::nullopt;
    return number ? json::value(*number) : Expected(node, type, path);
  }

  json::value List(const Node& node, std::string_view type, const std::string& path) {
    if (node.kind != Node::Kind::kList) return Expected(node, type, path);
    json::array list;
    for (size_t i = 0; i < node.items.size(); ++i)
      list.push_back(Read(node.items[i], Inside(type), path + "[" + std::to_string(i) + "]"));
    return list;
  }

  json::value Texts(const Node& node, const std::string& path) {
    if (node.kind != Node::Kind::kMap) return Expected(node, "{text}", path);
    json::object texts;
    for (size_t i = 0; i < node.keys.size(); ++i)
      texts[node.keys[i].text] = Scalar(node.items[i], "text", path + "." + node.keys[i].text);
    return texts;
  }

  json::value Section(const Node& node, std::string_view type, const std::string& path) {
    if (node.kind != Node::Kind::kMap) return Expected(node, type, path);
    json::object section;
    std::vector<std::string> names;
    const std::vector<PodField> fields = FieldsOf(type);
    for (const PodField& field : fields) {
      names.push_back(field.name);
      const Node* found = node.Find(field.name);
      const bool there = found != nullptr && found->kind != Node::Kind::kNull;
      if (!there && field.required) {
        Wrong(node.place, path,
              "got no " + field.name + ", expected " + ExpectedOf(field.type) + " there");
      }
    }
    for (size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& name = node.keys[i].text;
      const auto field = std::find_if(fields.begin(), fields.end(),
                                      [&](const PodField& one) { return one.name == name; });
      if (field == fields.end()) {
        const std::string meant = DidYouMean(name, names);
        Wrong(node.keys[i].place, path,
              "got the unknown field " + PrintableText(name) +
                  (meant.empty() ? ", expected " + ExpectedOf(type) : meant));
      } else if (node.items[i].kind != Node::Kind::kNull) {
        section[name] = Read(node.items[i], field->type, path + "." + name);
      }
    }
    return section;
  }

  const PodErrorHandler& wrong_;
  bool ok_ = true;
};

}  // namespace

std::span<const PodDefinition> PodDefinitions() { return kDefinitions; }

std::optional<json::value> ReadPodValue(const Node& node, std::string_view type,
                                        const std::string& path, const PodErrorHandler& wrong) {
  Reader reader(wrong);
  json::value value = reader.Read(node, type, path);
  if (!reader.ok()) return std::nullopt;
  return value;
}

json::object PodValueSchema(std::string_view type) {
  if (type == "text") return {{"type", json::array{"string", "number", "boolean"}}};
  if (type == "int") return {{"type", "integer"}};
  if (type == "flag") return {{"type", "boolean"}};
  if (type == "{text}")
    return {{"type", "object"}, {"additionalProperties", PodValueSchema("text")}};
  if (IsList(type)) return {{"type", "array"}, {"items", PodValueSchema(Inside(type))}};
  json::object properties;
  json::array required;
  for (const PodField& field : FieldsOf(type)) {
    properties[field.name] = PodValueSchema(field.type);
    if (field.required) required.emplace_back(field.name);
  }
  json::object schema{
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

}  // namespace shoal::job
