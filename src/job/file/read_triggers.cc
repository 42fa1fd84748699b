// Reads the fields `after`, `matrix` and `sweep.parameters`, whose values are more than scalars and
// lists.
#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "job/file/decode.h"
#include "job/spec/enum_names.h"
#include "job/text/units.h"

namespace shoal::job {
namespace {

constexpr size_t kMaxParameters = 64;
constexpr size_t kMaxParameterName = 63;

// Where errors of one field go.
struct TriggerContext {
  const Field& field;
  const std::string& path;
  Errors* errors;

  bool Wrong(const SourceLocation& place, const std::string& sentence) const {
    errors->Add(place, path, sentence);
    return false;
  }
  bool Wrong(const Node& node) const {
    return Wrong(node.place, "got " + DescribeNode(node) + ", expected " + Expected(field));
  }
};

bool IsScalarText(const Node& node) {
  return node.kind == Node::Kind::kScalar && !node.text.empty();
}

bool CheckParameterName(const TriggerContext& context, const Key& key) {
  const std::string& name = key.text;
  const bool fine = !name.empty() && name.size() <= kMaxParameterName &&
                    std::isalpha(static_cast<unsigned char>(name[0])) != 0 &&
                    std::ranges::all_of(name, [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '_' || c == '-';
                    });
  if (fine && name != "index") return true;
  return context.Wrong(key.place,
                       "got the name " + PrintableText(name) +
                           (name == "index" ? ", which is that of the member's number; choose "
                                              "another"
                                            : ", expected letters, digits, '_' and '-', a letter "
                                              "first, at most 63"));
}

bool ReadDependency(const TriggerContext& context, const Node& node, Dependency* one) {
  const Node* job = node.kind == Node::Kind::kMap ? node.Find("job") : &node;
  if (node.kind == Node::Kind::kMap) {
    for (size_t i = 0; i < node.keys.size(); ++i) {
      const Key& key = node.keys[i];
      if (key.text == "job") continue;
      if (key.text != "when")
        return context.Wrong(key.place, "got the unknown field " + PrintableText(key.text) +
                                            ", expected job and when" +
                                            DidYouMean(key.text, {"job", "when"}));
      const auto when = ValueOfName(kDependencyWhens, node.items[i].text);
      if (!when)
        return context.Wrong(node.items[i].place,
                             "got " + DescribeNode(node.items[i]) +
                                 ", expected one of succeeded, failed, ended" +
                                 DidYouMean(node.items[i].text, {"succeeded", "failed", "ended"}));
      one->when = *when;
    }
  }
  constexpr size_t kMaxJobName = 128;
  if (job == nullptr || !IsScalarText(*job) || job->text.size() > kMaxJobName)
    return context.Wrong(job == nullptr ? node : *job);
  one->job = job->text;
  return true;
}

bool ReadDependencies(const TriggerContext& context, const Node& node, Value* value) {
  const Node* const items = &node;
  if (node.kind != Node::Kind::kList)
    return ReadDependency(context, node, &value->after.emplace_back());
  if (items->items.empty()) return context.Wrong(node);
  if (items->items.size() > kMaxDependencies)
    return context.Wrong(node.place, "got a list of " + std::to_string(items->items.size()) +
                                         " jobs, expected at most " +
                                         std::to_string(kMaxDependencies));
  for (const Node& item : items->items) {
    Dependency one;
    if (!ReadDependency(context, item, &one)) return false;
    const bool again = std::ranges::any_of(
        value->after, [&](const Dependency& other) { return other.job == one.job; });
    if (again)
      return context.Wrong(item.place,
                           "got " + PrintableText(one.job) + " a second time, expected it once");
    value->after.push_back(std::move(one));
  }
  return true;
}

bool ReadLimit(const TriggerContext& context, const Node& node, int* limit) {
  const auto number = node.kind == Node::Kind::kScalar ? ParseInteger(node.text) : std::nullopt;
  if (!number || *number < 1 || *number > kMaxMembers)
    return context.Wrong(node.place,
                         "got " + DescribeNode(node) +
                             " as the limit of unfinished members, expected an integer from 1 to " +
                             std::to_string(kMaxMembers));
  *limit = static_cast<int>(*number);
  return true;
}

// `include` and `exclude`: a list of named values.
bool ReadEntries(const TriggerContext& context, const Node& node, const std::string& which,
                 std::vector<MatrixValues>* entries) {
  const std::string expected = ", expected a list of values such as " + which + ": [{lr: 0.1}]";
  if (node.kind != Node::Kind::kList || node.items.size() > kMaxMembers)
    return context.Wrong(node.place, "got " + DescribeNode(node) + expected);
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::kMap || item.keys.empty())
      return context.Wrong(item.place, "got " + DescribeNode(item) + expected);
    MatrixValues& entry = entries->emplace_back();
    for (size_t i = 0; i < item.keys.size(); ++i) {
      if (!CheckParameterName(context, item.keys[i])) return false;
      if (item.items[i].kind != Node::Kind::kScalar)
        return context.Wrong(item.items[i].place, "got " + DescribeNode(item.items[i]) +
                                                      ", expected a text or a number");
      entry[item.keys[i].text] = item.items[i].text;
    }
  }
  return true;
}

bool ReadChoices(const TriggerContext& context, const std::string& name, const Node& node,
                 std::vector<std::string>* values) {
  if (node.kind != Node::Kind::kList || node.items.empty() || node.items.size() > kMaxMembers)
    return context.Wrong(node.place, "got " + DescribeNode(node) + " for " + name +
                                         ", expected a list of 1 to " +
                                         std::to_string(kMaxMembers) + " values");
  std::set<std::string_view> seen;
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::kScalar)
      return context.Wrong(item.place, "got " + DescribeNode(item) + " in the values of " + name +
                                           ", expected a text or a number");
    if (!seen.insert(item.text).second)
      return context.Wrong(item.place,
                           "got " + PrintableText(item.text) + " a second time, expected it once");
    values->push_back(item.text);
  }
  return true;
}

// An exclusion that names an unknown parameter would exclude nothing.
bool CheckExclude(const TriggerContext& context, const Node& node, const Matrix& matrix) {
  std::vector<std::string> names;
  for (const auto& [name, values] : matrix.parameters) names.push_back(name);
  const Node* const exclude = node.Find("exclude");
  if (exclude == nullptr) return true;
  for (const Node& entry : exclude->items) {
    for (const Key& key : entry.keys) {
      if (std::ranges::find(names, key.text) == names.end())
        return context.Wrong(key.place, "got " + PrintableText(key.text) +
                                            ", expected a parameter of the matrix" +
                                            DidYouMean(key.text, names));
    }
  }
  return true;
}

bool ReadMatrix(const TriggerContext& context, const Node& node, Value* value) {
  if (node.kind != Node::Kind::kMap || node.keys.empty()) return context.Wrong(node);
  Matrix& matrix = value->matrix;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& name = node.keys[i].text;
    const Node& item = node.items[i];
    bool fine = true;
    if (name == "limit") {
      fine = ReadLimit(context, item, &matrix.limit);
    } else if (name == "include" || name == "exclude") {
      fine =
          ReadEntries(context, item, name, name == "include" ? &matrix.include : &matrix.exclude);
    } else {
      auto& [parameter, values] = matrix.parameters.emplace_back();
      parameter = name;
      fine = CheckParameterName(context, node.keys[i]) && ReadChoices(context, name, item, &values);
    }
    if (!fine) return false;
  }
  if (matrix.parameters.size() > kMaxParameters || matrix.empty()) return context.Wrong(node);
  return CheckExclude(context, node, matrix);
}

// ---- Parameters of sweeps -----------------------------------------------------------------------

// [LEAST, MOST] of a range.
bool ReadRange(const TriggerContext& context, const Node& node, SweepParameter* parameter) {
  const auto number = [](const Node& one) {
    return one.kind == Node::Kind::kScalar ? ParseNumber(one.text) : std::nullopt;
  };
  const bool two = node.kind == Node::Kind::kList && node.items.size() == 2;
  const auto least = two ? number(node.items[0]) : std::nullopt;
  const auto most = two ? number(node.items[1]) : std::nullopt;
  const bool logarithmic = parameter->kind == ParameterKind::kLogUniform ||
                           parameter->kind == ParameterKind::kLogInteger;
  const bool whole =
      parameter->kind == ParameterKind::kInteger || parameter->kind == ParameterKind::kLogInteger;
  constexpr double kMostWhole = 1e15;
  bool fine = least && most && *least < *most && (!logarithmic || *least > 0);
  if (fine && whole)
    fine = *least == static_cast<double>(static_cast<int64_t>(*least)) &&
           *most == static_cast<double>(static_cast<int64_t>(*most)) &&
           *most<kMostWhole&& * least> - kMostWhole && (!logarithmic || *least >= 1);
  if (!fine)
    return context.Wrong(node.place, "got " + DescribeNode(node) + " for " + parameter->name +
                                         ", expected [LEAST, MOST] of ascending " +
                                         (logarithmic ? "positive " : "") +
                                         (whole ? "whole numbers" : "numbers"));
  parameter->least = *least;
  parameter->most = *most;
  return true;
}

bool ReadSweepParameter(const TriggerContext& context, const Key& key, const Node& node,
                        SweepParameter* parameter) {
  parameter->name = key.text;
  if (!CheckParameterName(context, key)) return false;
  if (node.kind == Node::Kind::kList)
    return ReadChoices(context, key.text, node, &parameter->choices);
  const std::string expected =
      ", expected a list of values, or one of {uniform: [A, B]}, {log_uniform: [A, B]}, {integer: "
      "[A, B]}, {log_integer: [A, B]}";
  if (node.kind != Node::Kind::kMap || node.keys.empty())
    return context.Wrong(node.place, "got " + DescribeNode(node) + " for " + key.text + expected);
  bool ranged = false;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& word = node.keys[i].text;
    const auto kind = ValueOfName(kParameterKinds, word);
    if (word == "steps") {
      if (!ReadLimit(context, node.items[i], &parameter->steps)) return false;
      continue;
    }
    if (!kind || ranged)
      return context.Wrong(
          node.keys[i].place,
          "got " + PrintableText(word) + " for " + key.text + expected +
              DidYouMean(word, {"uniform", "log_uniform", "integer", "log_integer", "steps"}));
    ranged = true;
    parameter->kind = *kind;
    const bool read = *kind == ParameterKind::kChoice
                          ? ReadChoices(context, key.text, node.items[i], &parameter->choices)
                          : ReadRange(context, node.items[i], parameter);
    if (!read) return false;
  }
  if (ranged) return true;
  return context.Wrong(node.place, "got no range for " + key.text + expected);
}

bool ReadSweepParameters(const TriggerContext& context, const Node& node, Value* value) {
  if (node.kind != Node::Kind::kMap || node.keys.empty() || node.keys.size() > kMaxParameters)
    return context.Wrong(node);
  for (size_t i = 0; i < node.keys.size(); ++i) {
    if (!ReadSweepParameter(context, node.keys[i], node.items[i],
                            &value->parameters.emplace_back()))
      return false;
  }
  return true;
}

}  // namespace

bool ReadTriggers(const Field& field, const Node& node, const std::string& path, Value* value,
                  Errors* errors) {
  const TriggerContext context{field, path, errors};
  if (field.type == Type::kDependencies) return ReadDependencies(context, node, value);
  if (field.type == Type::kMatrix) return ReadMatrix(context, node, value);
  return ReadSweepParameters(context, node, value);
}

}  // namespace shoal::job
