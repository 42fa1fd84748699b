#include "job/file/trigger_fields.h"

#include <charconv>

#include "job/spec/enum_names.h"
#include "job/text/yaml_emitter.h"

namespace shoal::job {
namespace {

using V = const Value&;
using T = const Target&;

template <typename Enum, size_t n>
Enum PickName(const NameEntry<Enum> (&table)[n], const Value& value) {
  return ValueOfName(table, value.text).value_or(table[0].first);
}

// clang-format off
constexpr Field kTriggerFields[] = {
  {.path = "after", .type = Type::kDependencies, .fallback = "none",
   .doc = "Jobs of the same team that this one waits for, on a server, by ID or name: the newest of that name, "
          "or the one in the same file. `when`: succeeded (the default), failed or ended. When the condition can no "
          "longer be met, the job is cancelled ([triggers.md](triggers.md)).",
   .apply = [](V v, T t) { t.job->triggers.after = v.after; }},
  {.path = "matrix", .type = Type::kMatrix, .fallback = "none",
   .doc = "On a server: a job for each combination of the parameters' values, at most 10,000. `{{matrix.lr}}` "
          "anywhere in the file is replaced by the value, `{{matrix.index}}` by the member's number from 0. `limit`: "
          "how many members are unfinished at the same time [100]; `include` and `exclude` as in GitHub's matrix "
          "([triggers.md](triggers.md)).",
   .apply = [](V v, T t) { t.job->triggers.matrix = v.matrix; }},
  {.path = "sweep", .type = Type::kSection, .fallback = "none",
   .doc = "On a server: jobs with drawn parameters, for `{{matrix.NAME}}` as with `matrix`, compared by a number that "
          "they report ([triggers.md](triggers.md))."},
  {.path = "sweep.objective", .type = Type::kText, .most = 64, .fallback = "required",
   .doc = "Name of the reported number that decides (docs/metrics.md), such as loss; the mean of several tasks.",
   .apply = [](V v, T t) { t.job->triggers.sweep.objective = v.text; }},
  {.path = "sweep.goal", .type = Type::kChoice, .choices = "minimize|maximize", .fallback = "minimize",
   .doc = "Whether small or large numbers are good.",
   .apply = [](V v, T t) { t.job->triggers.sweep.goal = PickName(kSweepGoals, v); }},
  {.path = "sweep.search", .type = Type::kChoice, .choices = "random|grid", .fallback = "random",
   .doc = "`grid`: every combination of choices and of the `steps` of ranges.",
   .apply = [](V v, T t) { t.job->triggers.sweep.search = PickName(kSweepSearches, v); }},
  {.path = "sweep.trials", .type = Type::kInteger, .least = 1, .most = kMaxMembers,
   .fallback = "required for random; the whole grid",
   .doc = "Number of members.",
   .apply = [](V v, T t) { t.job->triggers.sweep.trials = static_cast<int>(v.integer); }},
  {.path = "sweep.seed", .type = Type::kInteger, .least = 0, .most = 2147483647, .fallback = "0",
   .doc = "The same seed draws the same values.",
   .apply = [](V v, T t) { t.job->triggers.sweep.seed = v.integer; }},
  {.path = "sweep.limit", .type = Type::kInteger, .least = 1, .most = kMaxMembers, .fallback = "4",
   .doc = "How many members are unfinished at the same time.",
   .apply = [](V v, T t) { t.job->triggers.sweep.limit = static_cast<int>(v.integer); }},
  {.path = "sweep.parameters", .type = Type::kSweepParameters, .fallback = "required",
   .doc = "The parameters: a list of choices, or {uniform: [A, B]}, {log_uniform: [A, B]}, {integer: [A, B]} or "
          "{log_integer: [A, B]}, for a grid with `steps`.",
   .apply = [](V v, T t) { t.job->triggers.sweep.parameters = v.parameters; }},
  {.path = "sweep.stop", .type = Type::kSection, .fallback = "no member is stopped",
   .doc = "Members whose objective is not among the best at a rung are stopped (ASHA)."},
  {.path = "sweep.stop.first", .type = Type::kNumber, .least = 0.001, .most = 1e12, .fallback = "required",
   .doc = "The first rung. The others are at `reduction` times the one before.",
   .apply = [](V v, T t) { t.job->triggers.sweep.stop.first = v.number; }},
  {.path = "sweep.stop.by", .type = Type::kText, .most = 64, .fallback = "the number of reports of the objective",
   .doc = "Name of the reported number that the rungs count, such as step or epoch.",
   .apply = [](V v, T t) { t.job->triggers.sweep.stop.by = v.text; }},
  {.path = "sweep.stop.reduction", .type = Type::kInteger, .least = 2, .most = 100, .fallback = "3",
   .doc = "At each rung the best of so many members goes on.",
   .apply = [](V v, T t) { t.job->triggers.sweep.stop.reduction = static_cast<int>(v.integer); }},
};
// clang-format on

Node RealNode(double value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return PlainScalar(error == std::errc() ? std::string(buffer, end) : "0");
}

Node ValuesNode(const MatrixValues& values) {
  Node node;
  node.kind = Node::Kind::kMap;
  for (const auto& [name, text] : values) AddField(&node, name, TextScalar(text));
  return node;
}

Node EntriesNode(const std::vector<MatrixValues>& entries) {
  Node node;
  node.kind = Node::Kind::kList;
  for (const MatrixValues& entry : entries) node.items.push_back(ValuesNode(entry));
  return node;
}

json::object ScalarSchema() { return {{"type", json::array{"string", "number", "boolean"}}}; }

json::object ListSchema(json::object items) {
  return {{"type", "array"}, {"items", std::move(items)}, {"minItems", 1}};
}

json::object EntriesSchema() {
  return {{"type", "array"},
          {"items", json::object{{"type", "object"}, {"additionalProperties", ScalarSchema()}}}};
}

// ---- References ---------------------------------------------------------------------------------

constexpr std::string_view kOpen = "{{matrix.";
constexpr std::string_view kClose = "}}";

class Substitution {
 public:
  Substitution(const MatrixValues& values, size_t index, Errors* errors)
      : values_(values), index_(index), errors_(errors) {}

  void Apply(Node* node, const std::string& path) {
    if (node->kind == Node::Kind::kScalar) return ApplyText(node, path);
    for (size_t i = 0; i < node->items.size(); ++i) {
      const bool map = node->kind == Node::Kind::kMap;
      const std::string name = map ? node->keys[i].text : "";
      if (path.empty() && (name == "matrix" || name == "sweep")) continue;
      Apply(&node->items[i], path.empty() ? name : map ? path + "." + name : path);
    }
  }

 private:
  void ApplyText(Node* node, const std::string& path) {
    size_t at = node->text.find(kOpen);
    if (at == std::string::npos) return;
    std::string out;
    size_t from = 0;
    for (; at != std::string::npos; at = node->text.find(kOpen, from)) {
      const size_t end = node->text.find(kClose, at);
      const std::string name = node->text.substr(
          at + kOpen.size(), end == std::string::npos ? end : end - at - kOpen.size());
      const auto value = values_.find(name);
      const bool index = name == "index";
      if (end == std::string::npos || (value == values_.end() && !index)) {
        std::vector<std::string> names{"index"};
        for (const auto& [one, text] : values_) names.push_back(one);
        return errors_->Add(node->place, path,
                            "got the reference " + PrintableText(std::string(kOpen) + name) +
                                ", expected {{matrix.NAME}} with a parameter of this member" +
                                DidYouMean(name, names));
      }
      out.append(node->text, from, at - from);
      out += index ? std::to_string(index_) : value->second;
      from = end + kClose.size();
    }
    const bool whole = node->text.starts_with(kOpen) && from == node->text.size() &&
                       node->text.find(kOpen, 1) == std::string::npos;
    out.append(node->text, from);
    if (whole) node->quoted = false;
    if (out.empty()) node->kind = Node::Kind::kNull;
    node->text = std::move(out);
  }

  const MatrixValues& values_;
  const size_t index_;
  Errors* const errors_;
};

}  // namespace

std::vector<Field> TriggerFields() {
  return {std::begin(kTriggerFields), std::end(kTriggerFields)};
}

json::object TriggerSchema(const Field& field) {
  if (field.type == Type::kDependencies) {
    json::object one{
        {"type", "object"},
        {"properties",
         json::object{
             {"job", json::object{{"type", "string"}}},
             {"when", json::object{{"enum", json::array{"succeeded", "failed", "ended"}}}}}},
        {"required", json::array{"job"}},
        {"additionalProperties", false}};
    json::object item{{"anyOf", json::array{json::object{{"type", "string"}}, one}}};
    json::object list = ListSchema(item);
    list["maxItems"] = kMaxDependencies;
    item["anyOf"].get_array().push_back(std::move(list));
    return item;
  }
  if (field.type == Type::kMatrix) {
    const json::object limit{{"type", "integer"}, {"minimum", 1}, {"maximum", kMaxMembers}};
    return {{"type", "object"},
            {"properties",
             json::object{
                 {"limit", limit}, {"include", EntriesSchema()}, {"exclude", EntriesSchema()}}},
            {"additionalProperties", ListSchema(ScalarSchema())}};
  }
  json::object range{{"type", "array"},
                     {"items", json::object{{"type", "number"}}},
                     {"minItems", 2},
                     {"maxItems", 2}};
  json::object properties{{"choice", ListSchema(ScalarSchema())},
                          {"steps", json::object{{"type", "integer"}, {"minimum", 1}}}};
  for (const char* const kind : {"uniform", "log_uniform", "integer", "log_integer"})
    properties[kind] = range;
  json::object one{
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  return {{"type", "object"},
          {"additionalProperties",
           json::object{{"anyOf", json::array{ListSchema(ScalarSchema()), std::move(one)}}}}};
}

Node AfterNode(const Triggers& triggers) {
  Node node;
  for (const Dependency& one : triggers.after) {
    node.kind = Node::Kind::kList;
    Node item;
    AddField(&item, "job", TextScalar(one.job));
    AddField(&item, "when", PlainScalar(std::string(NameOfValue(kDependencyWhens, one.when))));
    node.items.push_back(std::move(item));
  }
  return node;
}

Node MatrixNode(const Triggers& triggers) {
  const Matrix& matrix = triggers.matrix;
  Node node;
  if (matrix.empty()) return node;
  for (const auto& [name, values] : matrix.parameters) AddField(&node, name, TextListNode(values));
  if (!matrix.include.empty()) AddField(&node, "include", EntriesNode(matrix.include));
  if (!matrix.exclude.empty()) AddField(&node, "exclude", EntriesNode(matrix.exclude));
  if (matrix.limit != Matrix().limit)
    AddField(&node, "limit", PlainScalar(std::to_string(matrix.limit)));
  return node;
}

Node SweepNode(const Triggers& triggers) {
  const Sweep& sweep = triggers.sweep;
  const Sweep usual;
  Node node;
  if (sweep.objective.empty()) return node;
  AddField(&node, "objective", TextScalar(sweep.objective));
  AddField(&node, "goal", PlainScalar(std::string(NameOfValue(kSweepGoals, sweep.goal))));
  AddField(&node, "search", PlainScalar(std::string(NameOfValue(kSweepSearches, sweep.search))));
  if (sweep.trials > 0) AddField(&node, "trials", PlainScalar(std::to_string(sweep.trials)));
  if (sweep.seed != 0) AddField(&node, "seed", PlainScalar(std::to_string(sweep.seed)));
  AddField(&node, "limit", PlainScalar(std::to_string(sweep.limit)));
  Node parameters;
  for (const SweepParameter& one : sweep.parameters) {
    Node values;
    if (one.kind == ParameterKind::kChoice) {
      values = TextListNode(one.choices);
    } else {
      Node range;
      range.kind = Node::Kind::kList;
      range.items = {RealNode(one.least), RealNode(one.most)};
      AddField(&values, std::string(NameOfValue(kParameterKinds, one.kind)), std::move(range));
      if (one.steps > 0) AddField(&values, "steps", PlainScalar(std::to_string(one.steps)));
    }
    AddField(&parameters, one.name, std::move(values));
  }
  AddField(&node, "parameters", std::move(parameters));
  if (sweep.stop == usual.stop) return node;
  Node stop;
  AddField(&stop, "first", RealNode(sweep.stop.first));
  if (!sweep.stop.by.empty()) AddField(&stop, "by", TextScalar(sweep.stop.by));
  AddField(&stop, "reduction", PlainScalar(std::to_string(sweep.stop.reduction)));
  AddField(&node, "stop", std::move(stop));
  return node;
}

void SubstituteMember(const MatrixValues& values, size_t index, Node* root, Errors* errors) {
  Substitution(values, index, errors).Apply(root, "");
}

}  // namespace shoal::job
