#include "learn/params/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "job/text/errors.h"

namespace shoal::learn {
namespace {

std::vector<std::string_view> Split(std::string_view words) {
  std::vector<std::string_view> parts;
  while (!words.empty()) {
    const size_t space = words.find(' ');
    if (space != 0) parts.push_back(words.substr(0, space));
    words.remove_prefix(space == std::string_view::npos ? words.size() : space + 1);
  }
  return parts;
}

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x == '-' ? '_' : x) == (y == '-' ? '_' : y); });
}

// Levenshtein distance; names are short.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string Nearest(std::span<const Param> table, std::string_view name) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const Param& param : table) {
    auto candidates = Split(param.aliases);
    candidates.push_back(param.name);
    for (std::string_view candidate : candidates) {
      const size_t distance = Distance(name, candidate);
      if (distance >= best_distance) continue;
      best_distance = distance;
      best = param.name;
    }
  }
  return std::string(best);
}

std::string Number(double value) {
  if (std::floor(value) == value && std::abs(value) < 1e15)
    return std::to_string(static_cast<int64_t>(value));
  return fmt::format("{}", value);
}

bool InRange(const Param& param, double value) {
  return value <= param.max && (param.above_min ? value > param.min : value >= param.min);
}

bool ParseInt(const Param& param, std::string_view text, ParamValue* out) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) {
    *out = value;
    return InRange(param, static_cast<double>(value));
  }
  // Also accepts whole numbers such as 1e6.
  double real = 0;
  auto [real_end, real_error] = std::from_chars(text.data(), text.data() + text.size(), real);
  if (real_error != std::errc() || real_end != text.data() + text.size()) return false;
  if (std::floor(real) != real || std::abs(real) > 9e15 || !InRange(param, real)) return false;
  *out = static_cast<int64_t>(real);
  return true;
}

bool ParseValue(const Param& param, std::string_view text, ParamValue* out) {
  switch (param.type) {
    case ParamType::kInt:
      return ParseInt(param, text, out);
    case ParamType::kReal: {
      double value = 0;
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        return false;
      *out = value;
      return InRange(param, value);
    }
    case ParamType::kBool: {
      const bool yes = text == "true" || text == "1" || text == "yes" || text == "on";
      const bool no = text == "false" || text == "0" || text == "no" || text == "off";
      *out = yes;
      return yes || no;
    }
    case ParamType::kChoice: {
      for (std::string_view choice : Split(param.choices)) {
        if (choice != text) continue;
        *out = std::string(text);
        return true;
      }
      return false;
    }
    case ParamType::kText:
      *out = std::string(text);
      return text.size() <= kMaxParamText;
  }
  return false;
}

// Read by the task (task.cc).
constexpr std::array kCommonParams = {
    Param{"server_copies", "", ParamType::kInt, 1, 2, false, "", "1",
          "Servers that have each row; with 2, none is lost when a server dies, and training goes "
          "on. Needs 2 servers or more."},
    Param{"transport", "", ParamType::kChoice, 0, 0, false, "auto ucx", "auto",
          "How workers reach servers: auto is shared memory on one host and TCP between hosts; ucx "
          "is UCX (RDMA), among hosts that are trusted."},
    Param{"cache_data", "", ParamType::kChoice, 0, 0, false, "auto on off", "auto",
          "Files that a worker reads are copied to its host and found there by the next job: auto "
          "those on a network file system, on all. See SHOAL_CACHE."}};

// At most 64 bytes of a value for a message.
std::string Shown(std::string_view text) {
  if (text.empty()) return "nothing";
  return std::string(text.substr(0, 64)) + (text.size() > 64 ? "…" : "");
}

}  // namespace

std::span<const Param> CommonParams() { return kCommonParams; }

const Param* FindParam(std::span<const Param> table, std::string_view name) {
  for (const Param& param : table) {
    if (SameName(param.name, name)) return &param;
    for (std::string_view alias : Split(param.aliases)) {
      if (SameName(alias, name)) return &param;
    }
  }
  return nullptr;
}

std::string DescribeExpected(const Param& param) {
  switch (param.type) {
    case ParamType::kInt:
    case ParamType::kReal:
      return fmt::format("{} in {}{}, {}]",
                         param.type == ParamType::kInt ? "an integer" : "a number",
                         param.above_min ? '(' : '[', Number(param.min), Number(param.max));
    case ParamType::kBool:
      return "true or false";
    case ParamType::kChoice:
      return fmt::format("one of {}", fmt::join(Split(param.choices), ", "));
    case ParamType::kText:
      return fmt::format("text of at most {} bytes", kMaxParamText);
  }
  return "";
}

std::string FormatPlace(std::string_view file, const job::LearnValue& value,
                        std::string_view name) {
  if (file.empty() || value.line <= 0) return fmt::format("learn.{}: ", name);
  return fmt::format("{}:{}:{}: learn.{}: ", file, value.line, value.column, name);
}

Result<ParamValues> ParseParams(std::span<const Param> table,
                                const std::map<std::string, job::LearnValue>& learn,
                                std::string_view file) {
  std::vector<std::pair<std::string_view, const job::LearnValue*>> ordered;
  for (const auto& [name, value] : learn) {
    if (name != "algorithm") ordered.emplace_back(name, &value);
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->line, a.second->column) <
           std::pair(b.second->line, b.second->column);
  });

  ParamValues values;
  for (const auto& [name, value] : ordered) {
    const Param* param = FindParam(table, name);
    if (param == nullptr) param = FindParam(kCommonParams, name);
    if (param == nullptr) {
      const std::string nearest = Nearest(table, name);
      const auto named = learn.find("algorithm");
      const std::string list = fmt::format("`shoal train {} --help` lists them, with '-' for '_'",
                                           named == learn.end() ? "ALGORITHM" : named->second.text);
      return InvalidArgument(fmt::format("{}unknown parameter; {}", FormatPlace(file, *value, name),
                                         nearest.empty() ? list : "did you mean " + nearest + "?"));
    }
    if (values.contains(param->name))
      return InvalidArgument(fmt::format("{}given twice (as {} too); keep one of them",
                                         FormatPlace(file, *value, name), param->name));
    if (value->text == "auto" && param->default_text == "auto") continue;
    ParamValue parsed;
    if (!ParseValue(*param, value->text, &parsed)) {
      const auto choices = Split(param->choices);
      return InvalidArgument(
          fmt::format("{}got {}, expected {}{}", FormatPlace(file, *value, name),
                      Shown(value->text), DescribeExpected(*param),
                      job::DidYouMean(value->text, {choices.begin(), choices.end()})));
    }
    values.emplace(param->name, std::move(parsed));
  }
  return values;
}

Status CheckNoRetiredParams(std::span<const Param> table,
                            const std::map<std::string, job::LearnValue>& learn,
                            std::string_view file) {
  for (const auto& [name, value] : learn) {
    const Param* const param = FindParam(table, name);
    if (param == nullptr || !param->retired) continue;
    return InvalidArgument(fmt::format("{}no longer a parameter: {}; leave it out",
                                       FormatPlace(file, value, name), param->doc));
  }
  return Status::Ok();
}

std::string ParamsAsMarkdown(std::span<const Param> table) {
  std::string text = "| parameter | also | value | default | meaning |\n|---|---|---|---|---|\n";
  std::vector<Param> all(table.begin(), table.end());
  all.insert(all.end(), kCommonParams.begin(), kCommonParams.end());
  for (const Param& param : all) {
    if (param.retired) continue;
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", param.name, param.aliases,
                        DescribeExpected(param), param.default_text, param.doc);
  }
  return text;
}

}  // namespace shoal::learn
