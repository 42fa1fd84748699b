#include "import/marathon/marathon_variables.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace shoal::importer {
namespace {

constexpr size_t kLongestLabel = 493;  // longer names are no variables there
constexpr size_t kLongestValue = 512;

// As Java prints a double: "0.5", "128.0".
std::string NumberText(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
  std::string number(text, end);
  return number.find('.') == std::string::npos ? number + ".0" : number;
}

// "my-label.1" → "MY_LABEL_1", with one "_" for several other characters.
std::string LabelName(const std::string& label) {
  std::string name;
  for (const char c : label) {
    const bool plain = c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) {
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    } else if (name.empty() || name.back() != '_') {
      name += '_';
    }
  }
  return name;
}

void SetLabels(const job::Node* labels, job::Role* role) {
  if (labels == nullptr || labels->kind != job::Node::Kind::kMap) return;
  std::string names;
  for (size_t i = 0; i < labels->keys.size(); ++i) {
    const std::string& label = labels->keys[i].text;
    const std::string& value = labels->items[i].text;
    if (label.size() >= kLongestLabel || value.size() >= kLongestValue) continue;
    const std::string name = LabelName(label);
    names += (names.empty() ? "" : " ") + name;
    role->env.try_emplace("MARATHON_APP_LABEL_" + name, value);
  }
  role->env.try_emplace("MARATHON_APP_LABELS", names);
}

}  // namespace

void SetMarathonVariables(FieldReader app, const std::string& id, job::Role* role) {
  if (!id.empty()) role->env.try_emplace("MARATHON_APP_ID", id);
  const auto number = [&](const char* name, double value) {
    role->env.try_emplace(std::string("MARATHON_APP_RESOURCE_") + name, NumberText(value));
  };
  number("CPUS", app.ReadNumber("cpus", 0, 1e9).value_or(1));
  number("MEM", app.ReadNumber("mem", 0, 1e15).value_or(128));
  number("DISK", app.ReadNumber("disk", 0, 1e15).value_or(0));
  role->env.try_emplace("MARATHON_APP_RESOURCE_GPUS", std::to_string(role->resources.gpu));
  if (auto container = app.ReadObject("container")) {
    auto docker = container->ReadObject("docker");
    const auto image = docker ? docker->ReadText("image") : std::nullopt;
    if (image) role->env.try_emplace("MARATHON_APP_DOCKER_IMAGE", *image);
  }
  SetLabels(app.ReadNode("labels"), role);
  for (const char* name : {"MARATHON_APP_VERSION", "MESOS_TASK_ID"}) {
    const bool named = std::ranges::any_of(
        role->command, [&](const std::string& word) { return word.find(name) != word.npos; });
    if (!named || role->env.contains(name)) continue;
    app.set_at("roles." + role->name + ".command");
    app.AddLoss("cmd", std::string(name) +
                           " is a variable that only Marathon knows; not kept: it is not set; "
                           "SHOAL_JOB_ID, SHOAL_ROLE and SHOAL_INDEX name the task here");
  }
}

}  // namespace shoal::importer
