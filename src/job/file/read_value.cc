// Reads one node of the tree as a value of a field type.
#include <algorithm>
#include <cctype>

#include "job/execution/policy.h"
#include "job/file/decode.h"
#include "job/file/pod_fields.h"
#include "job/spec/cluster_reference.h"
#include "job/spec/enum_names.h"
#include "job/text/units.h"

namespace shoal::job {
namespace {

constexpr size_t kMaxPortName = 15;
constexpr size_t kMaxPodValue = 64 << 10;  // bytes, as JSON
constexpr size_t kMaxVariableName = 256;

// The context that a reader needs to report an error.
struct ValueContext {
  const Field& field;
  const std::string& path;
  Errors* errors;

  bool Wrong(const Node& node, const std::string& remedy = {}) const {
    errors->Add(node.place, path,
                "got " + DescribeNode(node) + ", expected " + Expected(field) + remedy);
    return false;
  }
};

bool IsPlain(const Node& node) { return node.kind == Node::Kind::kScalar && !node.quoted; }

bool IsName(std::string_view name, size_t most) {
  return !name.empty() && name.size() <= most &&
         std::isalnum(static_cast<unsigned char>(name[0])) != 0 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxVariableName &&
         std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

std::string LeaveOutQuotes(const Node& node) {
  return node.kind == Node::Kind::kScalar && node.quoted ? "; leave out the quotes" : "";
}

bool ReadText(const ValueContext& context, const Node& node, Value* value) {
  const Field& field = context.field;
  if (node.kind != Node::Kind::kScalar || node.text.empty()) return context.Wrong(node);
  const bool fits = field.type == Type::kName ? IsName(node.text, static_cast<size_t>(field.most))
                                              : static_cast<double>(node.text.size()) <= field.most;
  if (!fits) return context.Wrong(node);
  value->text = node.text;
  return true;
}

bool ReadInteger(const ValueContext& context, const Node& node, Value* value) {
  const auto integer = IsPlain(node) ? ParseInteger(node.text) : std::nullopt;
  if (!integer || static_cast<double>(*integer) < context.field.least ||
      static_cast<double>(*integer) > context.field.most) {
    return context.Wrong(node, LeaveOutQuotes(node));
  }
  value->integer = *integer;
  return true;
}

bool ReadNumber(const ValueContext& context, const Node& node, Value* value) {
  const auto number = IsPlain(node) ? ParseNumber(node.text) : std::nullopt;
  if (!number || *number < context.field.least || *number > context.field.most) {
    return context.Wrong(node, LeaveOutQuotes(node));
  }
  value->number = *number;
  return true;
}

// Sizes and durations may be quoted, since their unit distinguishes them from numbers.
bool ReadWithUnit(const ValueContext& context, const Node& node, Value* value) {
  const bool is_size = context.field.type == Type::kSize;
  if (node.kind != Node::Kind::kScalar) return context.Wrong(node);
  const auto amount = is_size ? ParseSize(node.text) : ParseDurationMs(node.text);
  const bool in_range = amount && static_cast<double>(*amount) >= context.field.least &&
                        static_cast<double>(*amount) <= context.field.most;
  if (!in_range) {
    const bool bare = ParseNumber(node.text).has_value();
    const char* units =
        is_size ? "; the units are K M G T and Ki Mi Gi Ti" : "; the units are ms, s, m, h and d";
    return context.Wrong(node, bare || !amount ? units : "");
  }
  value->integer = *amount;
  if (!is_size) value->duration = std::chrono::milliseconds(*amount);
  return true;
}

bool ReadChoice(const ValueContext& context, const Node& node, Value* value) {
  std::vector<std::string> choices(1);
  for (const char c : context.field.choices) {
    if (c == '|') {
      choices.emplace_back();
    } else {
      choices.back() += c;
    }
  }
  if (node.kind != Node::Kind::kScalar) return context.Wrong(node);
  if (std::find(choices.begin(), choices.end(), node.text) == choices.end()) {
    return context.Wrong(node, DidYouMean(node.text, choices));
  }
  value->text = node.text;
  return true;
}

bool ReadTexts(const ValueContext& context, const Node& node, Value* value) {
  const bool command = context.field.type == Type::kCommand;
  if (node.kind == Node::Kind::kScalar && !command && !node.text.empty()) {
    value->texts = {node.text};
    return true;
  }
  if (node.kind != Node::Kind::kList || node.items.empty()) {
    return context.Wrong(node, command && node.kind == Node::Kind::kScalar
                                   ? "; for a line of shell write [sh, -c, \"...\"]"
                                   : "");
  }
  if (static_cast<double>(node.items.size()) > context.field.most && context.field.most > 0) {
    context.errors->Add(node.place, context.path,
                        "got a list of " + std::to_string(node.items.size()) +
                            ", expected at most " +
                            std::to_string(static_cast<int64_t>(context.field.most)));
    return false;
  }
  for (const Node& item : node.items) {
    // A command may contain an empty word; a list of files or roles may not.
    const bool ok = item.kind == Node::Kind::kScalar && (command || !item.text.empty());
    if (!ok) {
      context.errors->Add(item.place, context.path,
                          "got " + DescribeNode(item) + " in a list of texts, expected a text");
      return false;
    }
    value->texts.push_back(item.text);
  }
  if (command && value->texts[0].empty()) return context.Wrong(node.items[0]);
  return true;
}

bool CheckVariable(const ValueContext& context, const Key& key) {
  std::string wrong;
  if (!IsVariableName(key.text)) {
    wrong = ", expected the name of an environment variable: letters, digits and '_'";
  } else if (IsReservedVariable(key.text)) {
    wrong = ", which Shoal sets itself for every task; choose another name";
  } else {
    return true;
  }
  context.errors->Add(key.place, context.path, "got " + PrintableText(key.text) + wrong);
  return false;
}

bool CheckKey(const ValueContext& context, const Key& key) {
  if (context.field.type == Type::kVariables) return CheckVariable(context, key);
  const bool fine = context.field.type == Type::kLearn ? IsName(key.text, 63)
                                                       : IsPlainName(key.text, kMaxPlainName);
  if (fine) return true;
  context.errors->Add(key.place, context.path,
                      "got the name " + PrintableText(key.text) +
                          (context.field.type == Type::kLearn
                               ? ", expected letters, digits, '-', '_' and '.'"
                               : ", expected lower-case letters, digits and '-', a letter first"));
  return false;
}

// `{secret: NAME}` or `{secret_file: NAME}`, as the reference that it is short for.
bool ReadSecret(const ValueContext& context, const Key& key, const Node& node, std::string* text) {
  const bool one = node.keys.size() == 1 &&
                   (node.keys[0].text == "secret" || node.keys[0].text == "secret_file");
  if (one && node.items[0].kind == Node::Kind::kScalar && IsSecretName(node.items[0].text)) {
    *text = SecretReference(node.items[0].text, node.keys[0].text == "secret_file");
    return true;
  }
  context.errors->Add(one ? node.items[0].place : node.place, context.path + "." + key.text,
                      "got " + DescribeNode(one ? node.items[0] : node) +
                          (one ? ", expected a secret's name of letters, digits, '-', '_' and '.'"
                               : ", expected a text, a number, {secret: NAME} or "
                                 "{secret_file: NAME}"));
  return false;
}

// A scalar as written; null as an empty text.
bool ReadScalar(const ValueContext& context, const Key& key, const Node& node, std::string* text) {
  const std::string_view path = context.field.path;
  const bool env =
      context.field.type == Type::kVariables && (path == "env" || path.ends_with(".env"));
  if (env && node.kind == Node::Kind::kMap) return ReadSecret(context, key, node, text);
  if (node.kind == Node::Kind::kList && context.field.type == Type::kLearn && key.text == "data") {
    for (const Node& item : node.items) {
      if (item.kind != Node::Kind::kScalar) {
        context.errors->Add(item.place, context.path + ".data",
                            "got " + DescribeNode(item) + " in a list of texts, expected a text");
        return false;
      }
      *text += (text->empty() ? "" : " ") + item.text;
    }
    return true;
  }
  if (node.kind == Node::Kind::kList || node.kind == Node::Kind::kMap) {
    context.errors->Add(node.place, context.path + "." + key.text,
                        "got " + DescribeNode(node) + ", expected a text or a number");
    return false;
  }
  *text = node.text;
  return true;
}

// Reads named values: kTextMap, kVariables (the names of environment variables) and kLearn.
bool ReadMap(const ValueContext& context, const Node& node, Value* value) {
  if (node.kind == Node::Kind::kNull) return true;
  if (node.kind != Node::Kind::kMap) return context.Wrong(node);
  bool ok = true;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const Key& key = node.keys[i];
    const Node& item = node.items[i];
    std::string text;
    if (!CheckKey(context, key) || !ReadScalar(context, key, item, &text)) {
      ok = false;
    } else if (context.field.type == Type::kLearn) {
      const bool from_file = item.place.set < 0;
      value->learn[key.text] = {std::move(text), from_file ? item.place.line : 0,
                                from_file ? item.place.column : 0};
    } else {
      value->map[key.text] = std::move(text);
    }
  }
  return ok;
}

bool ReadFlag(const ValueContext& context, const Node& node, bool* flag) {
  if (!IsPlain(node) || (node.text != "true" && node.text != "false")) {
    context.errors->Add(node.place, context.path + ".plain",
                        "got " + DescribeNode(node) + ", expected true or false");
    return false;
  }
  *flag = node.text == "true";
  return true;
}

// {name: grpc, plain: true}, or with `list` {names: [grpc], plain: true}.
bool ReadPortFields(const ValueContext& context, const Node& node, bool list,
                    std::vector<Node>* names, bool* plain) {
  const std::string field = list ? "names" : "name";
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const Node& item = node.items[i];
    if (node.keys[i].text == "plain") {
      if (!ReadFlag(context, item, plain)) return false;
    } else if (node.keys[i].text != field) {
      context.errors->Add(node.keys[i].place, context.path,
                          "got the unknown field " + PrintableText(node.keys[i].text) +
                              ", expected " + field + " or plain" +
                              DidYouMean(node.keys[i].text, {field, "plain"}));
      return false;
    } else if (list && item.kind == Node::Kind::kList) {
      *names = item.items;
    } else {
      names->push_back(item);
    }
  }
  return true;
}

// Reads one {key: text, action: …}; on failure reports it and returns false.
bool ReadRule(const ValueContext& context, const Node& node, const std::string& key,
              std::string* text, EndAction* action) {
  if (node.kind != Node::Kind::kMap) return context.Wrong(node);
  const Node* text_node = node.Find(key);
  const Node* action_node = node.Find("action");
  for (const Key& one : node.keys) {
    if (one.text == key || one.text == "action") continue;
    context.errors->Add(one.place, context.path,
                        "got the unknown field " + PrintableText(one.text) + ", expected " + key +
                            " and action" + DidYouMean(one.text, {key, "action"}));
    return false;
  }
  if (text_node == nullptr || action_node == nullptr) return context.Wrong(node);
  const auto known = ValueOfName(kEndActions, action_node->text);
  const bool log = context.field.type == Type::kLogRules;
  if (!known || (log && *known == EndAction::kIgnore)) {
    context.errors->Add(
        action_node->place, context.path + ".action",
        "got " + DescribeNode(*action_node) + ", expected one of retry, fail, " +
            (log ? "" : "ignore, ") + "restart_job, exclude_host" +
            DidYouMean(action_node->text, {"retry", "fail", "restart_job", "exclude_host"}));
    return false;
  }
  if (text_node->kind != Node::Kind::kScalar || text_node->text.empty() ||
      text_node->text.size() > 1024) {
    return context.Wrong(*text_node);
  }
  *text = text_node->text;
  *action = *known;
  return true;
}

bool ReadRules(const ValueContext& context, const Node& node, Value* value) {
  if (node.kind != Node::Kind::kList) return context.Wrong(node);
  if (static_cast<double>(node.items.size()) > context.field.most) {
    context.errors->Add(
        node.place, context.path,
        "got a list of " + std::to_string(node.items.size()) + " rules, expected at most 64");
    return false;
  }
  for (const Node& item : node.items) {
    std::string text;
    EndAction action{};
    if (context.field.type == Type::kLogRules) {
      if (!ReadRule(context, item, "line", &text, &action)) return false;
      value->log_rules.push_back({std::move(text), action});
      continue;
    }
    if (!ReadRule(context, item, "code", &text, &action)) return false;
    if (!ParseExitMatch(text)) {
      context.errors->Add(item.Find("code")->place, context.path + ".code",
                          "got " + DescribeNode(*item.Find("code")) +
                              ", expected an exit code from 1 to 255, a range such as 128-255, a "
                              "signal such as SIGKILL, or signal, out-of-memory, lost");
      return false;
    }
    value->exit_rules.push_back({std::move(text), action});
  }
  return true;
}

bool AddPort(const ValueContext& context, const Node& name, bool plain, Value* value) {
  if (name.kind != Node::Kind::kScalar || !IsPlainName(name.text, kMaxPortName)) {
    context.errors->Add(name.place, context.path,
                        "got " + DescribeNode(name) +
                            " as the name of a port, expected lower-case letters, "
                            "digits and '-', a letter first, at most 15");
    return false;
  }
  for (const Port& port : value->ports) {
    if (port.name != name.text) continue;
    context.errors->Add(
        name.place, context.path,
        "got the port " + PrintableText(name.text) + " a second time, expected it once");
    return false;
  }
  value->ports.push_back({name.text, plain});
  return true;
}

// Reads `ports` in each of its forms: a list of names, a list of {name, plain}, or {names, plain}.
bool ReadPorts(const ValueContext& context, const Node& node, Value* value) {
  std::vector<Node> names;
  bool plain = false;
  if (node.kind == Node::Kind::kMap) {
    if (!ReadPortFields(context, node, true, &names, &plain)) return false;
    if (names.empty()) {
      value->ports.push_back({"main", plain});
      return true;
    }
    for (const Node& name : names) {
      if (!AddPort(context, name, plain, value)) return false;
    }
    return true;
  }
  if (node.kind != Node::Kind::kList) return context.Wrong(node);
  if (static_cast<double>(node.items.size()) > context.field.most) {
    context.errors->Add(
        node.place, context.path,
        "got a list of " + std::to_string(node.items.size()) + " ports, expected at most 16");
    return false;
  }
  for (const Node& item : node.items) {
    names.assign(1, item);
    plain = false;
    if (item.kind == Node::Kind::kMap) {
      names.clear();
      if (!ReadPortFields(context, item, false, &names, &plain)) return false;
      if (names.empty()) names.push_back(item);
    }
    if (!AddPort(context, names[0], plain, value)) return false;
  }
  return true;
}

bool ReadPod(const ValueContext& context, const Node& node, Value* value) {
  const auto wrong = [&](const SourceLocation& place, const std::string& path,
                         const std::string& sentence) {
    context.errors->Add(place, path, sentence);
  };
  const auto read = ReadPodValue(node, context.field.choices, context.path, wrong);
  if (!read) return false;
  const bool nothing = (read->is_object() && read->get_object().empty()) ||
                       (read->is_array() && read->get_array().empty());
  if (!nothing) value->text = ToText(*read);
  return value->text.size() <= kMaxPodValue || context.Wrong(node, " of at most 64 KiB");
}

}  // namespace

bool IsPlainName(std::string_view name, size_t most) {
  return !name.empty() && name.size() <= most && name[0] >= 'a' && name[0] <= 'z' &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

bool ReadValue(const Field& field, const Node& node, const std::string& path, Value* value,
               Errors* errors) {
  const ValueContext context{field, path, errors};
  switch (field.type) {
    case Type::kText:
    case Type::kName:
      return ReadText(context, node, value);
    case Type::kRole:
      // "follows: ~" overrides the framework's default with no role.
      if (node.kind == Node::Kind::kNull && field.path.ends_with(".follows")) return true;
      if (node.kind != Node::Kind::kScalar || node.text.empty()) return context.Wrong(node);
      value->text = node.text;
      return true;
    case Type::kInteger:
      return ReadInteger(context, node, value);
    case Type::kNumber:
      return ReadNumber(context, node, value);
    case Type::kSize:
    case Type::kDuration:
      return ReadWithUnit(context, node, value);
    case Type::kChoice:
      return ReadChoice(context, node, value);
    case Type::kTexts:
    case Type::kRoles:
    case Type::kCommand:
      return ReadTexts(context, node, value);
    case Type::kTextMap:
    case Type::kVariables:
    case Type::kLearn:
      return ReadMap(context, node, value);
    case Type::kExitRules:
    case Type::kLogRules:
      return ReadRules(context, node, value);
    case Type::kPorts:
      return ReadPorts(context, node, value);
    case Type::kPodValue:
      return ReadPod(context, node, value);
    case Type::kDependencies:
    case Type::kMatrix:
    case Type::kSweepParameters:
      return ReadTriggers(field, node, path, value, errors);
    case Type::kSection:
    case Type::kSections:
      return false;
  }
  return false;
}

}  // namespace shoal::job
