#include "job/spec/triggers_json.h"

#include <charconv>

#include "job/spec/enum_names.h"
#include "job/spec/json_fields.h"

namespace shoal::job {
namespace {

json::object ValuesToJson(const MatrixValues& values) {
  json::object object;
  for (const auto& [name, text] : values) object[name] = text;
  return object;
}

json::array ListToJson(const std::vector<MatrixValues>& list) {
  json::array array;
  for (const MatrixValues& values : list) array.push_back(ValuesToJson(values));
  return array;
}

json::array TextsToJson(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

Status ListFromJson(const json::object& object, std::string_view field,
                    std::vector<MatrixValues>* list) {
  TRY_ASSIGN(const json::array* array, GetArray(object, field));
  for (const json::value& item : *array) {
    if (!item.is_object()) return Wrong(field, "an array of objects");
    const json::object one{{"values", item}};
    TRY(GetTextMap(one, "values", &list->emplace_back()));
  }
  return Status::Ok();
}

// As a text: the JSON library may be off by one unit in the last place.
std::string NumberText(double value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : "0";
}

Status GetNumberText(const json::object& object, std::string_view field, double* value) {
  TRY_ASSIGN(const std::string text, GetString(object, field));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc() || end != text.data() + text.size()) return Wrong(field, "a number");
  return Status::Ok();
}

json::object SweepToJson(const Sweep& sweep) {
  json::array parameters;
  for (const SweepParameter& one : sweep.parameters) {
    parameters.push_back(json::object{{"name", one.name},
                                      {"kind", NameOfValue(kParameterKinds, one.kind)},
                                      {"choices", TextsToJson(one.choices)},
                                      {"least", NumberText(one.least)},
                                      {"most", NumberText(one.most)},
                                      {"steps", one.steps}});
  }
  return {{"objective", sweep.objective},
          {"goal", NameOfValue(kSweepGoals, sweep.goal)},
          {"search", NameOfValue(kSweepSearches, sweep.search)},
          {"trials", sweep.trials},
          {"seed", sweep.seed},
          {"limit", sweep.limit},
          {"parameters", std::move(parameters)},
          {"by", sweep.stop.by},
          {"first", NumberText(sweep.stop.first)},
          {"reduction", sweep.stop.reduction}};
}

Status SweepFromJson(const json::object& object, Sweep* sweep) {
  TRY_ASSIGN(sweep->objective, GetString(object, "objective"));
  TRY(GetEnum(object, "goal", kSweepGoals, &sweep->goal));
  TRY(GetEnum(object, "search", kSweepSearches, &sweep->search));
  TRY(GetIn(object, "trials", 0, kMaxMembers, &sweep->trials));
  TRY_ASSIGN(sweep->seed, GetInt(object, "seed"));
  TRY(GetIn(object, "limit", 1, kMaxMembers, &sweep->limit));
  TRY_ASSIGN(const json::array* parameters, GetArray(object, "parameters"));
  for (const json::value& item : *parameters) {
    if (!item.is_object()) return Wrong("parameters", "an array of objects");
    const json::object& one = item.get_object();
    SweepParameter& parameter = sweep->parameters.emplace_back();
    TRY_ASSIGN(parameter.name, GetString(one, "name"));
    TRY(GetEnum(one, "kind", kParameterKinds, &parameter.kind));
    TRY(GetTexts(one, "choices", &parameter.choices));
    TRY(GetNumberText(one, "least", &parameter.least));
    TRY(GetNumberText(one, "most", &parameter.most));
    TRY(GetIn(one, "steps", 0, kMaxMembers, &parameter.steps));
  }
  TRY_ASSIGN(sweep->stop.by, GetString(object, "by"));
  TRY(GetNumberText(object, "first", &sweep->stop.first));
  return GetIn(object, "reduction", 2, kMaxMembers, &sweep->stop.reduction);
}

Status MatrixFromJson(const json::object& object, Matrix* matrix) {
  TRY_ASSIGN(const json::array* parameters, GetArray(object, "parameters"));
  for (const json::value& item : *parameters) {
    if (!item.is_object()) return Wrong("parameters", "an array of objects");
    auto& [name, values] = matrix->parameters.emplace_back();
    TRY_ASSIGN(name, GetString(item.get_object(), "name"));
    TRY(GetTexts(item.get_object(), "values", &values));
  }
  TRY(ListFromJson(object, "include", &matrix->include));
  TRY(ListFromJson(object, "exclude", &matrix->exclude));
  return GetIn(object, "limit", 1, kMaxMembers, &matrix->limit);
}

}  // namespace

json::object EncodeTriggers(const Triggers& triggers) {
  json::object object;
  json::array after;
  for (const Dependency& one : triggers.after)
    after.push_back(
        json::object{{"job", one.job}, {"when", NameOfValue(kDependencyWhens, one.when)}});
  if (!after.empty()) object["after"] = std::move(after);
  if (triggers.matrix != Matrix()) {
    json::array parameters;
    for (const auto& [name, values] : triggers.matrix.parameters)
      parameters.push_back(json::object{{"name", name}, {"values", TextsToJson(values)}});
    object["matrix"] = json::object{{"parameters", std::move(parameters)},
                                    {"include", ListToJson(triggers.matrix.include)},
                                    {"exclude", ListToJson(triggers.matrix.exclude)},
                                    {"limit", triggers.matrix.limit}};
  }
  if (triggers.sweep != Sweep()) object["sweep"] = SweepToJson(triggers.sweep);
  return object;
}

Status DecodeTriggers(const json::object& object, Triggers* triggers) {
  if (object.contains("after")) {
    TRY_ASSIGN(const json::array* after, GetArray(object, "after"));
    for (const json::value& item : *after) {
      if (!item.is_object()) return Wrong("after", "an array of objects");
      Dependency& one = triggers->after.emplace_back();
      TRY_ASSIGN(one.job, GetString(item.get_object(), "job"));
      TRY(GetEnum(item.get_object(), "when", kDependencyWhens, &one.when));
    }
  }
  if (object.contains("matrix")) {
    TRY_ASSIGN(const json::object* matrix, GetObject(object, "matrix"));
    TRY(MatrixFromJson(*matrix, &triggers->matrix).With("matrix"));
  }
  if (!object.contains("sweep")) return Status::Ok();
  TRY_ASSIGN(const json::object* sweep, GetObject(object, "sweep"));
  return SweepFromJson(*sweep, &triggers->sweep).With("sweep");
}

}  // namespace shoal::job
