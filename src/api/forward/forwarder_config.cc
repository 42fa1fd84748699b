#include "api/forward/forwarder_config.h"

#include <algorithm>

#include "base/file.h"
#include "job/text/errors.h"
#include "job/text/yaml_tree.h"

namespace shoal::api {
namespace {

using job::Node;
using Kind = ForwarderConfig::Kind;

constexpr size_t kMaxFileBytes = size_t{256} << 10;
constexpr size_t kMaxNameBytes = 40;

struct Setting {
  const char* name;
  const char* kinds;  // that have it
  std::string ForwarderConfig::*field;
};

constexpr Setting kSettings[] = {
    {"url", "opensearch loki syslog", &ForwarderConfig::url},
    {"index", "opensearch", &ForwarderConfig::index},
    {"tenant", "loki", &ForwarderConfig::tenant},
    {"username", "opensearch loki", &ForwarderConfig::username},
    {"password_file", "opensearch loki", &ForwarderConfig::password_file},
    {"token_file", "opensearch loki", &ForwarderConfig::token_file},
    {"authorities", "opensearch loki syslog", &ForwarderConfig::authorities_file},
};

constexpr std::pair<const char*, Kind> kKinds[] = {
    {"opensearch", Kind::kOpenSearch}, {"loki", Kind::kLoki}, {"syslog", Kind::kSyslog}};

std::vector<std::string> SettingsOf(const std::string& kind) {
  std::vector<std::string> names = {"kind", "teams"};
  for (const Setting& setting : kSettings)
    if (std::string_view(setting.kinds).find(kind) != std::string_view::npos)
      names.emplace_back(setting.name);
  if (kind == "loki") names.emplace_back("labels");
  return names;
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::ranges::all_of(name, [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

// A label's name as Loki has it, without those that are ours.
bool IsLabel(const std::string& name) {
  const auto letter = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto rest = [&](unsigned char c) { return letter(c) || (c >= '0' && c <= '9'); };
  for (const char* own : {"service_name", "team", "engine", "role"})
    if (name == own) return false;
  return !name.empty() && name.size() <= kMaxNameBytes && letter(name[0]) &&
         std::ranges::all_of(name, rest);
}

bool IsText(const Node& node) {
  return node.kind == Node::Kind::kScalar && !node.text.empty() && job::IsText(node.text);
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file), errors_(file.string(), {}) {}

  Result<std::vector<ForwarderConfig>> Read() {
    TRY_ASSIGN(const std::string text, ReadFile(file_, kMaxFileBytes));
    const Node root = job::ParseYaml(text, -1, &errors_);
    if (errors_.empty()) ReadRoot(root);
    TRY(errors_.ToStatus());
    return std::move(configs_);
  }

 private:
  void ReadRoot(const Node& root) {
    for (const job::Key& key : root.keys)
      if (key.text != "forward")
        errors_.Add(key.place, key.text, "unknown field, expected 'forward'");
    const Node* const all = root.Find("forward");
    if (all == nullptr || all->kind != Node::Kind::kMap || all->items.empty() ||
        all->items.size() > kMaxForwarders)
      return errors_.Add(all == nullptr ? root.place : all->place, "forward",
                         "expected 1 to 16 receivers, 'NAME: {kind: KIND, url: URL}'");
    for (size_t i = 0; i < all->items.size(); ++i) ReadOne(all->keys[i], all->items[i]);
  }

  void ReadOne(const job::Key& key, const Node& node) {
    const std::string path = "forward." + key.text;
    if (!IsName(key.text))
      return errors_.Add(key.place, "forward",
                         "got the name " + job::PrintableText(key.text) +
                             ", expected lower-case letters, digits and '-', at most 40");
    const Node* const kind = node.kind == Node::Kind::kMap ? node.Find("kind") : nullptr;
    const auto* const found = std::ranges::find_if(
        kKinds, [&](const auto& one) { return kind != nullptr && kind->text == one.first; });
    if (found == std::end(kKinds))
      return errors_.Add(node.place, path + ".kind", "expected opensearch, loki or syslog");
    ForwarderConfig config;
    config.name = key.text;
    config.kind = found->second;
    for (size_t i = 0; i < node.items.size(); ++i)
      ReadSetting(path, kind->text, node.keys[i], node.items[i], &config);
    Check(path, node, config);
    configs_.push_back(std::move(config));
  }

  void Check(const std::string& path, const Node& node, const ForwarderConfig& config) {
    if (config.url.empty())
      return errors_.Add(node.place, path + ".url", "missing, expected where lines are sent");
    if (config.username.empty() != config.password_file.empty())
      return errors_.Add(node.place, path, "username and password_file belong together");
    if (!errors_.empty()) return;
    const auto sink = MakeLogSink(config);
    if (!sink.ok()) errors_.Add(node.place, path, sink.status().message());
  }

  void ReadSetting(const std::string& path, const std::string& kind, const job::Key& key,
                   const Node& node, ForwarderConfig* config) {
    const std::vector<std::string> known = SettingsOf(kind);
    const std::string at = path + "." + key.text;
    if (std::ranges::find(known, key.text) == known.end())
      return errors_.Add(
          key.place, at,
          "the kind " + kind + " has no such setting" + job::DidYouMean(key.text, known));
    if (key.text == "kind") return;
    if (key.text == "teams") return ReadTeams(at, node, config);
    if (key.text == "labels") return ReadLabels(at, node, config);
    if (!IsText(node))
      return errors_.Add(node.place, at, "got " + job::DescribeNode(node) + ", expected a text");
    for (const Setting& setting : kSettings)
      if (setting.name == key.text) config->*setting.field = node.text;
  }

  void ReadTeams(const std::string& path, const Node& node, ForwarderConfig* config) {
    const bool list = node.kind == Node::Kind::kList && std::ranges::all_of(node.items, IsText);
    if (!list) return errors_.Add(node.place, path, "expected a list of teams");
    for (const Node& team : node.items) config->teams.push_back(team.text);
  }

  void ReadLabels(const std::string& path, const Node& node, ForwarderConfig* config) {
    if (node.kind != Node::Kind::kMap)
      return errors_.Add(node.place, path, "expected labels, '{NAME: value}'");
    for (size_t i = 0; i < node.items.size(); ++i) {
      if (!IsLabel(node.keys[i].text) || !IsText(node.items[i]))
        errors_.Add(node.keys[i].place, path,
                    "expected the name of a label, other than service_name, team, engine and role, "
                    "and its text");
      config->labels[node.keys[i].text] = node.items[i].text;
    }
  }

  const std::filesystem::path file_;
  job::Errors errors_;
  std::vector<ForwarderConfig> configs_;
};

}  // namespace

Result<std::vector<ForwarderConfig>> ReadForwarders(const std::filesystem::path& file) {
  return Reader(file).Read();
}

}  // namespace shoal::api
