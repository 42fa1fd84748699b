// Reads the configuration file of engine instances.

#include <algorithm>

#include "base/file.h"
#include "controller/engines/engine_registry.h"
#include "job/text/errors.h"
#include "job/text/yaml_tree.h"

namespace shoal::controller {
namespace {

using job::Node;

constexpr size_t kMaxFileBytes = size_t{256} << 10;
constexpr size_t kMaxInstances = 200;
constexpr size_t kMaxNameBytes = 40;

struct Setting {
  const char* name;
  const char* kind;  // the kind that has it
  std::string EngineInstance::*field;
};

constexpr Setting kSettings[] = {
    {"kubeconfig", "kubernetes", &EngineInstance::kubeconfig},
    {"context", "kubernetes", &EngineInstance::context},
    {"namespace", "kubernetes", &EngineInstance::name_space},
    {"launcher", "kubernetes", &EngineInstance::launcher},
    {"host", "docker", &EngineInstance::host},
    {"url", "marathon", &EngineInstance::url},
};
constexpr const char* kEnvironment = "env";  // of slurm

// The settings of a kind, besides `kind` itself.
std::vector<std::string> SettingsOf(const std::string& kind) {
  std::vector<std::string> names = {"kind"};
  for (const Setting& setting : kSettings) {
    if (setting.kind == kind) names.emplace_back(setting.name);
  }
  if (kind == "slurm") names.emplace_back(kEnvironment);
  return names;
}

bool IsInstanceName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

bool IsNonEmptyText(const Node& node) {
  return node.kind == Node::Kind::kScalar && !node.text.empty() && job::IsText(node.text);
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file), errors_(file.string(), {}) {}

  Result<std::vector<EngineInstance>> Read() {
    TRY_ASSIGN(const std::string text, ReadFile(file_, kMaxFileBytes));
    const Node root = job::ParseYaml(text, -1, &errors_);
    if (errors_.empty()) ReadRoot(root);
    TRY(errors_.ToStatus());
    return std::move(instances_);
  }

 private:
  void ReadRoot(const Node& root) {
    const Node* const engines = root.Find("engines");
    for (const job::Key& key : root.keys) {
      if (key.text != "engines")
        errors_.Add(key.place, key.text, "unknown field, expected 'engines'");
    }
    const bool some = engines != nullptr && engines->kind == Node::Kind::kMap;
    if (!some || engines->items.empty()) {
      return errors_.Add(engines == nullptr ? root.place : engines->place, "engines",
                         "got " + job::DescribeNode(engines == nullptr ? root : *engines) +
                             ", expected at least one instance, 'NAME: {kind: KIND}'");
    }
    if (engines->items.size() > kMaxInstances)
      return errors_.Add(engines->place, "engines", "got more than 200 instances");
    for (size_t i = 0; i < engines->items.size(); ++i)
      ReadInstance(engines->keys[i], engines->items[i]);
  }

  void ReadInstance(const job::Key& key, const Node& node) {
    const std::string path = "engines." + key.text;
    EngineInstance instance{.name = key.text, .kind = key.text};
    if (!IsInstanceName(key.text)) {
      return errors_.Add(key.place, "engines",
                         "got the name " + job::PrintableText(key.text) +
                             ", expected lower-case letters, digits and '-', at most 40");
    }
    if (node.kind != Node::Kind::kMap && node.kind != Node::Kind::kNull) {
      return errors_.Add(node.place, path,
                         "got " + job::DescribeNode(node) + ", expected fields, '{kind: KIND}'");
    }
    if (const Node* const kind = node.Find("kind")) instance.kind = kind->text;
    const std::vector<std::string> kinds = EngineKinds();
    if (std::find(kinds.begin(), kinds.end(), instance.kind) == kinds.end()) {
      return errors_.Add(node.place, path + ".kind",
                         "got " + job::PrintableText(instance.kind) + ", expected one of: " +
                             EngineKindsText() + job::DidYouMean(instance.kind, kinds));
    }
    for (size_t i = 0; i < node.items.size(); ++i)
      ReadSetting(path, node.keys[i], node.items[i], &instance);
    instances_.push_back(std::move(instance));
  }

  void ReadSetting(const std::string& path, const job::Key& key, const Node& node,
                   EngineInstance* instance) {
    const std::vector<std::string> known = SettingsOf(instance->kind);
    const std::string at = path + "." + key.text;
    if (std::find(known.begin(), known.end(), key.text) == known.end()) {
      return errors_.Add(key.place, at,
                         "the engine " + instance->kind + " has no such setting" +
                             job::DidYouMean(key.text, known));
    }
    if (key.text == kEnvironment) return ReadEnvironment(at, node, instance);
    if (!IsNonEmptyText(node)) {
      return errors_.Add(node.place, at, "got " + job::DescribeNode(node) + ", expected a text");
    }
    for (const Setting& setting : kSettings) {
      if (setting.name == key.text) instance->*setting.field = node.text;
    }
  }

  void ReadEnvironment(const std::string& path, const Node& node, EngineInstance* instance) {
    if (node.kind != Node::Kind::kMap) {
      return errors_.Add(
          node.place, path,
          "got " + job::DescribeNode(node) + ", expected variables, '{NAME: value}'");
    }
    for (size_t i = 0; i < node.items.size(); ++i) {
      const std::string& name = node.keys[i].text;
      if (name.empty() || name.find('=') != std::string::npos || !IsNonEmptyText(node.items[i])) {
        errors_.Add(node.keys[i].place, path, "expected a variable's name and its text");
        continue;
      }
      instance->environment[name] = node.items[i].text;
    }
  }

  const std::filesystem::path file_;
  job::Errors errors_;
  std::vector<EngineInstance> instances_;
};

}  // namespace

Result<std::vector<EngineInstance>> ReadEngineInstances(const std::filesystem::path& file) {
  return Reader(file).Read();
}

}  // namespace shoal::controller
