#include "sql/session/option_list.h"

#include <algorithm>

#include "job/text/errors.h"
#include "job/text/units.h"

namespace shoal::sql {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::string Shown(const std::string& text) {
  if (text.empty()) return "nothing";
  return text.substr(0, 64) + (text.size() > 64 ? "…" : "");
}

}  // namespace

std::optional<Option> OptionList::Take(std::string_view name) {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& option) {
    return SameName(option.key.text, name);
  });
  if (found == options_.end()) return std::nullopt;
  Option option = std::move(*found);
  options_.erase(found);
  return option;
}

Result<int64_t> OptionList::TakeInteger(std::string_view name, int64_t min, int64_t max,
                                        int64_t other) {
  const std::optional<Option> option = Take(name);
  if (!option) return other;
  const std::optional<int64_t> value = job::ParseInteger(option->value.text);
  if (value && *value >= min && *value <= max) return *value;
  return script_.Error(option->value.span, "got " + Shown(option->value.text) + " for " +
                                               std::string(name) + ", expected an integer from " +
                                               std::to_string(min) + " to " + std::to_string(max));
}

Result<bool> OptionList::TakeFlag(std::string_view name, bool other) {
  const std::optional<Option> option = Take(name);
  if (!option) return other;
  if (SameName(option->value.text, "true")) return true;
  if (SameName(option->value.text, "false")) return false;
  return script_.Error(option->value.span, "got " + Shown(option->value.text) + " for " +
                                               std::string(name) + ", expected true or false");
}

std::string OptionList::TakeText(std::string_view name, std::string_view other) {
  std::optional<Option> option = Take(name);
  return option ? std::move(option->value.text) : std::string(other);
}

Status OptionList::RefuseRest(const std::vector<std::string>& known) const {
  if (options_.empty()) return Status::Ok();
  const Word& key = options_.front().key;
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  return script_.Error(
      key.span, "there is no parameter " + Shown(key.text) +
                    (known.empty() ? "; this statement takes none" : ", expected one of " + list) +
                    job::DidYouMean(key.text.substr(0, 64), known));
}

}  // namespace shoal::sql
