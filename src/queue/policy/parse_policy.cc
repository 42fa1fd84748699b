#include "queue/policy/parse_policy.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "job/file/decode.h"
#include "job/text/yaml_tree.h"
#include "queue/policy/policy_fields.h"
#include "queue/policy/validate_policy.h"

namespace shoal::queue {
namespace {

using job::Node;
using job::Type;

constexpr size_t kMostBytes = size_t{4} << 20;
constexpr size_t kMostQueues = 20'000;
constexpr size_t kMostDepth = 16;

std::string Dotted(std::string_view prefix, std::string_view name) {
  return prefix.empty() ? std::string(name) : std::string(prefix) + "." + std::string(name);
}

// Milliseconds since 1970 of "2026-12-24T18:00:00Z".
std::optional<Millis> ParseInstant(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int length = 0;
  const int read = std::sscanf(text.c_str(), "%4d-%2u-%2uT%2d:%2d:%2dZ%n", &year, &month, &day,
                               &hour, &minute, &second, &length);
  if (read != 6 || length != static_cast<int>(text.size())) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59 || year < 1970) return std::nullopt;
  const std::chrono::sys_days days(date);
  return std::chrono::duration_cast<Millis>(days.time_since_epoch()) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second);
}

class PolicyDecoder {
 public:
  PolicyDecoder(Policy* policy, PolicyPlaces* places, job::Errors* errors)
      : policy_(policy), places_(places), errors_(errors) {}

  void Section(const Node& node, std::string_view pattern, const std::string& path,
               const PolicyTarget& target);

 private:
  void OneField(const PolicyField& field, const Node& node, const std::string& path,
                PolicyTarget target);
  void Sections(const PolicyField& field, const Node& node, const std::string& path,
                const PolicyTarget& target);
  void NamedSection(const PolicyField& field, const job::Key& key, const Node& node,
                    const std::string& path, PolicyTarget target);
  void Shorthand(const PolicyField& field, std::string_view pattern, const Node& node,
                 const std::string& path, const PolicyTarget& target);
  void Unknown(const job::Key& key, std::string_view pattern, const std::string& path);

  Policy* const policy_;
  PolicyPlaces* const places_;
  job::Errors* const errors_;
};

std::string NamesBelow(std::string_view pattern) {
  std::string names;
  for (const std::string& name : PolicyFieldsBelow(pattern))
    names += (names.empty() ? "" : ", ") + name;
  return names;
}

void PolicyDecoder::Section(const Node& node, std::string_view pattern, const std::string& path,
                            const PolicyTarget& target) {
  if (node.kind == Node::Kind::kNull) return;
  if (node.kind != Node::Kind::kMap) {
    errors_->Add(node.place, path,
                 "got " + job::DescribeNode(node) + ", expected a section of the fields " +
                     NamesBelow(pattern));
    return;
  }
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const job::Key& key = node.keys[i];
    const PolicyField* const field =
        key.text == "*" ? nullptr : FindPolicyField(Dotted(pattern, key.text));
    if (field == nullptr) {
      Unknown(key, pattern, path);
      continue;
    }
    const std::string field_path = Dotted(path, key.text);
    const bool section =
        field->field.type == Type::kSection || field->field.type == Type::kSections;
    (*places_)[field_path] = section ? key.place : node.items[i].place;
    OneField(*field, node.items[i], field_path, target);
  }
}

void PolicyDecoder::OneField(const PolicyField& field, const Node& node, const std::string& path,
                             PolicyTarget target) {
  if (field.field.type == Type::kSections) return Sections(field, node, path, target);
  if (field.field.type == Type::kSection) {
    for (size_t r = 0; r < kResources; ++r) {
      if (field.field.path == std::string("queues.*.quota.*.") + kResourceNames[r])
        target.quota = target.quota + r;
    }
    if (!field.field.shorthand.empty() && node.kind == Node::Kind::kScalar)
      return Shorthand(field, field.field.path, node, path, target);
    return Section(node, field.field.path, path, target);
  }
  job::Value value;
  if (!job::ReadValue(field.field, node, path, &value, errors_)) return;
  if (field.apply != nullptr) return field.apply(value, target);
  const std::optional<Millis> instant = ParseInstant(value.text);
  if (!instant) {
    errors_->Add(
        node.place, path,
        "got " + job::DescribeNode(node) + ", expected a time in UTC such as 2026-12-24T18:00:00Z");
    return;
  }
  (path.ends_with(".from") ? target.window->from : target.window->until) = *instant;
}

void PolicyDecoder::Shorthand(const PolicyField& field, std::string_view pattern, const Node& node,
                              const std::string& path, const PolicyTarget& target) {
  const std::string shorthand = Dotted(path, field.field.shorthand);
  (*places_)[shorthand] = node.place;
  OneField(*FindPolicyField(Dotted(pattern, field.field.shorthand)), node, shorthand, target);
}

void PolicyDecoder::Sections(const PolicyField& field, const Node& node, const std::string& path,
                             const PolicyTarget& target) {
  if (node.kind == Node::Kind::kNull) return;
  if (node.kind != Node::Kind::kMap) {
    errors_->Add(
        node.place, path,
        "got " + job::DescribeNode(node) + ", expected named sections, such as {NAME: {}}");
    return;
  }
  if (node.keys.size() > kMostQueues) {
    errors_->Add(node.place, path,
                 "got " + std::to_string(node.keys.size()) + " sections, expected at most " +
                     std::to_string(kMostQueues));
    return;
  }
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const job::Key& key = node.keys[i];
    if (!job::IsPlainName(key.text, job::kMaxPlainName)) {
      errors_->Add(key.place, path,
                   "got the name " + job::PrintableText(key.text) +
                       ", expected lower-case letters, digits and '-', a letter first, at most " +
                       std::to_string(job::kMaxPlainName));
      continue;
    }
    const std::string section_path = Dotted(path, key.text);
    (*places_)[section_path] = key.place;
    NamedSection(field, key, node.items[i], section_path, target);
  }
}

void PolicyDecoder::NamedSection(const PolicyField& field, const job::Key& key, const Node& node,
                                 const std::string& path, PolicyTarget target) {
  Flavor flavor;
  QueueSpec queue;
  MaintenanceWindow window;
  FlavorQuota quota;
  flavor.name = queue.name = window.name = key.text;
  const std::string_view list = field.field.path;
  if (list == "flavors") target.flavor = &flavor;
  if (list == "queues") target.queue = &queue;
  if (list == "maintenance") target.window = &window;
  if (list == "queues.*.quota") target.quota = quota.data();
  const std::string pattern = std::string(list) + ".*";
  if (node.kind == Node::Kind::kScalar && !field.field.shorthand.empty()) {
    Shorthand(field, pattern, node, path, target);
  } else {
    Section(node, pattern, path, target);
  }
  if (list == "flavors") policy_->flavors.push_back(std::move(flavor));
  if (list == "queues") policy_->queues.push_back(std::move(queue));
  if (list == "maintenance") policy_->windows.push_back(std::move(window));
  if (list == "queues.*.quota") target.queue->quota[key.text] = quota;
}

void PolicyDecoder::Unknown(const job::Key& key, std::string_view pattern,
                            const std::string& path) {
  if (key.text == "<<") {
    errors_->Add(key.place, path, "got a merge key '<<', expected the fields written out");
    return;
  }
  const std::string meant = job::DidYouMean(key.text, PolicyFieldsBelow(pattern));
  errors_->Add(key.place, path,
               "got the unknown field " + job::PrintableText(key.text) +
                   (meant.empty() ? ", expected one of " + NamesBelow(pattern) : meant));
}

// Depth below the roots of a tree that is known to have no cycle.
void CheckDepth(const Policy& policy, const PolicyPlaces& places, job::Errors* errors) {
  std::map<std::string, std::string> parent;
  for (const QueueSpec& queue : policy.queues) parent[queue.name] = queue.parent;
  for (const QueueSpec& queue : policy.queues) {
    size_t depth = 1;
    for (std::string above = queue.parent; !above.empty(); above = parent[above]) ++depth;
    if (depth <= kMostDepth) continue;
    const std::string path = "queues." + queue.name + ".parent";
    errors->Add(places.at(path), path,
                "got a tree of more than " + std::to_string(kMostDepth) + " levels");
    return;
  }
}

}  // namespace

Result<Policy> ParsePolicy(std::string_view text, const std::string& file) {
  job::Errors errors(file, {});
  if (text.size() > kMostBytes) {
    errors.Add({}, "", "got a file of more than 4 MiB, expected a policy");
    return errors.ToStatus();
  }
  const Node root = job::ParseYaml(text, -1, &errors);
  TRY(errors.ToStatus());
  if (root.kind != Node::Kind::kMap) {
    errors.Add(root.kind == Node::Kind::kNull ? job::SourceLocation{1, 1, -1} : root.place, "",
               "got " + job::DescribeNode(root) + ", expected a policy with flavors and queues");
    return errors.ToStatus();
  }
  Policy policy;
  PolicyPlaces places;
  PolicyTarget target;
  target.policy = &policy;
  PolicyDecoder(&policy, &places, &errors).Section(root, "", "", target);
  ValidatePolicy(policy, places, &errors);
  TRY(errors.ToStatus());
  CheckDepth(policy, places, &errors);
  TRY(errors.ToStatus());
  return policy;
}

std::string PolicyReference() {
  std::string text = "| field | value | default | |\n| --- | --- | --- | --- |\n";
  for (const PolicyField& field : PolicyFields()) {
    std::string path(field.field.path);
    for (size_t at = 0; (at = path.find('*', at)) != std::string::npos;)
      path.replace(at, 1, "NAME");
    const bool section = field.field.type == Type::kSection || field.field.type == Type::kSections;
    text += "| `" + path + "` | " +
            (field.apply == nullptr && !section ? "a time"
             : section                          ? "fields"
                                                : job::Expected(field.field)) +
            " | " + std::string(field.field.fallback) + " | " + std::string(field.field.doc) +
            " |\n";
  }
  return text;
}

}  // namespace shoal::queue
