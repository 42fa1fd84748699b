// Parameters as members of a plain struct: each entry of an algorithm's table names the member that
// it sets, so that table, parser and model.json cannot diverge.
#pragma once

#include <fmt/format.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/status.h"
#include "learn/params/params.h"

namespace shoal::learn {

template <typename Params>
struct ParamField {
  Param param;
  std::variant<int64_t Params::*, double Params::*, bool Params::*, std::string Params::*> member;
};

template <typename Params>
std::vector<Param> ParamsOf(std::span<const ParamField<Params>> fields) {
  std::vector<Param> table;
  for (const auto& field : fields) table.push_back(field.param);
  return table;
}

// Parses parameters into `params`; absent ones keep their value. Errors as ParseParams.
template <typename Params>
Status ParseFields(std::span<const ParamField<Params>> fields,
                   const std::map<std::string, job::LearnValue>& learn, std::string_view file,
                   Params* params) {
  const std::vector<Param> table = ParamsOf(fields);
  TRY_ASSIGN(const ParamValues values, ParseParams(table, learn, file));
  for (const auto& field : fields) {
    const auto found = values.find(field.param.name);
    if (found == values.end()) continue;
    std::visit(
        [&](auto member) {
          using T = std::remove_reference_t<decltype(params->*member)>;
          params->*member = std::get<T>(found->second);
        },
        field.member);
  }
  return Status::Ok();
}

// For algorithms whose deterministic mode allows one thread a worker.
template <typename Params>
Status OneThreadIfDeterministic(const Params& params,
                                const std::map<std::string, job::LearnValue>& learn,
                                std::string_view file) {
  if (!params.deterministic || params.threads <= 1) return Status::Ok();
  const auto given = learn.find("threads");
  return InvalidArgument(fmt::format(
      "{}got {}, expected 1 because deterministic is true; use more workers instead",
      given == learn.end() ? "learn.threads: " : FormatPlace(file, given->second, "threads"),
      params.threads));
}

// All parameters as name → text, which ParseFields accepts.
template <typename Params>
std::map<std::string, std::string> FieldsToText(std::span<const ParamField<Params>> fields,
                                                const Params& params) {
  std::map<std::string, std::string> text;
  for (const auto& field : fields) {
    std::visit(
        [&](auto member) {
          text[std::string(field.param.name)] = fmt::format("{}", params.*member);
        },
        field.member);
  }
  return text;
}

}  // namespace shoal::learn
