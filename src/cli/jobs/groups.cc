#include "cli/jobs/groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/jobs/job_text.h"

namespace shoal::cli {
namespace {

std::string TextOr(const json::object& object, std::string_view field) {
  return GetStringOr(object, field, "");
}

// "3 succeeded, 1 failed"
std::string CountsText(const json::object& group) {
  std::string text;
  const json::object* const counts = FindObject(group, "counts");
  if (counts == nullptr) return text;
  for (const auto& [state, count] : *counts)
    text += (text.empty() ? "" : ", ") + ToText(count) + " " + std::string(state);
  return text;
}

std::string NumberText(const json::object& item, std::string_view field) {
  const json::value* const value = item.if_contains(field);
  return value == nullptr || !value->is_number()
             ? ""
             : fmt::format("{:.6g}", value->to_number<double>());
}

// The columns of the parameters, in the order of the first member's.
std::vector<std::string> ParametersOf(const json::array& items) {
  std::vector<std::string> names;
  for (const json::value& item : items) {
    const json::object* const values =
        item.is_object() ? FindObject(item.get_object(), "values") : nullptr;
    if (values == nullptr) continue;
    for (const auto& field : *values) {
      const std::string name(field.key());
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::string MembersText(const json::object& group, const json::array& items) {
  const std::vector<std::string> parameters = ParametersOf(items);
  const std::string objective = TextOr(group, "objective");
  std::vector<std::string> head = {"MEMBER", "STATE"};
  if (!objective.empty()) head.insert(head.end(), {objective, "RUNG"});
  head.insert(head.end(), parameters.begin(), parameters.end());
  const bool reasons = std::ranges::any_of(items, [](const json::value& item) {
    return item.is_object() && item.get_object().contains("reason");
  });
  if (reasons) head.emplace_back("REASON");
  std::vector<std::vector<std::string>> rows = {std::move(head)};
  for (const json::value& value : items) {
    if (!value.is_object()) continue;
    const json::object& item = value.get_object();
    std::vector<std::string> row = {TextOr(item, "id"), TextOr(item, "state")};
    if (!objective.empty())
      row.insert(row.end(), {NumberText(item, "objective"), NumberText(item, "rung")});
    const json::object* const values = FindObject(item, "values");
    for (const std::string& name : parameters)
      row.push_back(values == nullptr ? "" : TextOr(*values, name));
    if (reasons) row.push_back(TextOr(item, "reason"));
    rows.push_back(std::move(row));
  }
  return Table(rows);
}

}  // namespace

Result<std::optional<json::object>> FindGroup(controller::Jobs* jobs, const std::string& prefix) {
  TRY_ASSIGN(const std::vector<json::object> groups, jobs->FindGroups(prefix));
  std::string some;
  for (const json::object& group : groups) {
    const std::string id = TextOr(group, "id");
    if (id == prefix) return std::optional(group);
    if (groups.size() <= 5) some += (some.empty() ? "" : ", ") + id;
  }
  if (groups.size() <= 1)
    return groups.empty() ? std::optional<json::object>() : std::optional(groups.front());
  return InvalidArgument(prefix + " is the beginning of " + std::to_string(groups.size()) +
                         " groups" + (some.empty() ? "" : ": " + some) +
                         "; write more of the name");
}

std::string GroupText(const json::object& group) {
  std::vector<std::vector<std::string>> facts = {{"group", TextOr(group, "id")},
                                                 {"name", TextOr(group, "name")},
                                                 {"state", TextOr(group, "state")}};
  if (const std::string reason = TextOr(group, "reason"); !reason.empty())
    facts.push_back({"reason", reason});
  facts.push_back({"submitted", TextOr(group, "submitted") + " by " + TextOr(group, "user")});
  if (const std::string ended = TextOr(group, "ended"); !ended.empty())
    facts.push_back({"ended", ended});
  facts.push_back({"members", NumberText(group, "size") + ", at most " +
                                  NumberText(group, "limit") + " at once: " + CountsText(group)});
  if (const std::string objective = TextOr(group, "objective"); !objective.empty())
    facts.push_back({"objective", TextOr(group, "goal") + " " + objective});
  std::string text = Table(facts);
  const json::value* const items = group.if_contains("items");
  if (items != nullptr && items->is_array() && !items->get_array().empty())
    text += "\n" + MembersText(group, items->get_array());
  return text;
}

std::string GroupWaits(const json::object& group) {
  const std::string state = TextOr(group, "state");
  if (state != "running")
    return TextOr(group, "id") + " does not wait: it is " + state +
           (TextOr(group, "reason").empty() ? "" : ": " + TextOr(group, "reason")) + "\n";
  return TextOr(group, "id") + ": " + CountsText(group) + "; at most " +
         NumberText(group, "limit") +
         " members are unfinished at the same time. `shoal why` of a member, which `shoal show " +
         TextOr(group, "id") + "` lists, says what that one waits for\n";
}

std::string GroupTable(const std::vector<json::object>& groups) {
  std::vector<std::vector<std::string>> rows = {{"GROUP", "STATE", "MEMBERS", "REASON"}};
  for (const json::object& group : groups)
    rows.push_back(
        {TextOr(group, "id"), TextOr(group, "state"), CountsText(group), TextOr(group, "reason")});
  return Table(rows);
}

}  // namespace shoal::cli
