// One node of the tree as one value of a type of the table.
#include <algorithm>
#include <cctype>

#include "job/decode.h"
#include "job/enums.h"
#include "job/pod_fields.h"
#include "job/policy.h"
#include "job/units.h"

namespace shoal::job {
namespace {

constexpr size_t kMaxPortName = 15;
constexpr size_t kMaxPodValue = 64 << 10;  // bytes, as JSON
constexpr size_t kMaxVariableName = 256;

// What a reader needs to complain.
struct Site {
  const Field& field;
  const std::string& path;
  Errors* errors;

  bool Wrong(const Node& node, const std::string& remedy = {}) const {
    errors->Add(node.place, path, "got " + Tell(node) + ", expected " + Expected(field) + remedy);
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

bool ReadText(const Site& site, const Node& node, Value* value) {
  const Field& field = site.field;
  if (node.kind != Node::Kind::kScalar || node.text.empty()) return site.Wrong(node);
  const bool fits = field.type == Type::kName ? IsName(node.text, static_cast<size_t>(field.most))
                                              : static_cast<double>(node.text.size()) <= field.most;
  if (!fits) return site.Wrong(node);
  value->text = node.text;
  return true;
}

bool ReadInteger(const Site& site, const Node& node, Value* value) {
  const auto integer = IsPlain(node) ? ParseInteger(node.text) : std::nullopt;
  if (!integer || static_cast<double>(*integer) < site.field.least ||
      static_cast<double>(*integer) > site.field.most) {
    return site.Wrong(node, LeaveOutQuotes(node));
  }
  value->integer = *integer;
  return true;
}

bool ReadNumber(const Site& site, const Node& node, Value* value) {
  const auto number = IsPlain(node) ? ParseNumber(node.text) : std::nullopt;
  if (!number || *number < site.field.least || *number > site.field.most) {
    return site.Wrong(node, LeaveOutQuotes(node));
  }
  value->number = *number;
  return true;
}

// Sizes and times may stand in quotes: with their unit they are no numbers.
bool ReadWithUnit(const Site& site, const Node& node, Value* value) {
  const bool is_size = site.field.type == Type::kSize;
  if (node.kind != Node::Kind::kScalar) return site.Wrong(node);
  const auto amount = is_size ? ParseSize(node.text) : ParseDurationMs(node.text);
  const bool in_range = amount && static_cast<double>(*amount) >= site.field.least &&
                        static_cast<double>(*amount) <= site.field.most;
  if (!in_range) {
    const bool bare = ParseNumber(node.text).has_value();
    const char* units =
        is_size ? "; the units are K M G T and Ki Mi Gi Ti" : "; the units are ms, s, m, h and d";
    return site.Wrong(node, bare || !amount ? units : "");
  }
  value->integer = *amount;
  if (!is_size) value->duration = std::chrono::milliseconds(*amount);
  return true;
}

bool ReadChoice(const Site& site, const Node& node, Value* value) {
  std::vector<std::string> choices(1);
  for (const char c : site.field.choices) {
    if (c == '|') {
      choices.emplace_back();
    } else {
      choices.back() += c;
    }
  }
  if (node.kind != Node::Kind::kScalar) return site.Wrong(node);
  if (std::find(choices.begin(), choices.end(), node.text) == choices.end()) {
    return site.Wrong(node, DidYouMean(node.text, choices));
  }
  value->text = node.text;
  return true;
}

bool ReadTexts(const Site& site, const Node& node, Value* value) {
  const bool command = site.field.type == Type::kCommand;
  if (node.kind == Node::Kind::kScalar && !command && !node.text.empty()) {
    value->texts = {node.text};
    return true;
  }
  if (node.kind != Node::Kind::kList || node.items.empty()) {
    return site.Wrong(node, command && node.kind == Node::Kind::kScalar
                                ? "; for a line of shell write [sh, -c, \"...\"]"
                                : "");
  }
  if (static_cast<double>(node.items.size()) > site.field.most && site.field.most > 0) {
    site.errors->Add(node.place, site.path,
                     "got a list of " + std::to_string(node.items.size()) + ", expected at most " +
                         std::to_string(static_cast<int64_t>(site.field.most)));
    return false;
  }
  for (const Node& item : node.items) {
    // An empty word is a word of a command, but no file and no role.
    const bool ok = item.kind == Node::Kind::kScalar && (command || !item.text.empty());
    if (!ok) {
      site.errors->Add(item.place, site.path,
                       "got " + Tell(item) + " in a list of texts, expected a text");
      return false;
    }
    value->texts.push_back(item.text);
  }
  if (command && value->texts[0].empty()) return site.Wrong(node.items[0]);
  return true;
}

bool CheckVariable(const Site& site, const Key& key) {
  std::string wrong;
  if (!IsVariableName(key.text)) {
    wrong = ", expected the name of an environment variable: letters, digits and '_'";
  } else if (IsReservedVariable(key.text)) {
    wrong = ", which Shoal sets itself for every task; choose another name";
  } else {
    return true;
  }
  site.errors->Add(key.place, site.path, "got " + Shown(key.text) + wrong);
  return false;
}

bool CheckKey(const Site& site, const Key& key) {
  if (site.field.type == Type::kVariables) return CheckVariable(site, key);
  const bool fine =
      site.field.type == Type::kLearn ? IsName(key.text, 63) : IsPlainName(key.text, kMaxPlainName);
  if (fine) return true;
  site.errors->Add(key.place, site.path,
                   "got the name " + Shown(key.text) +
                       (site.field.type == Type::kLearn
                            ? ", expected letters, digits, '-', '_' and '.'"
                            : ", expected lower-case letters, digits and '-', a letter first"));
  return false;
}

// A scalar as it stands; nothing as an empty text.
bool ReadScalar(const Site& site, const Key& key, const Node& node, std::string* text) {
  if (node.kind == Node::Kind::kList && site.field.type == Type::kLearn && key.text == "data") {
    for (const Node& item : node.items) {
      if (item.kind != Node::Kind::kScalar) {
        site.errors->Add(item.place, site.path + ".data",
                         "got " + Tell(item) + " in a list of texts, expected a text");
        return false;
      }
      *text += (text->empty() ? "" : " ") + item.text;
    }
    return true;
  }
  if (node.kind == Node::Kind::kList || node.kind == Node::Kind::kMap) {
    site.errors->Add(node.place, site.path + "." + key.text,
                     "got " + Tell(node) + ", expected a text or a number");
    return false;
  }
  *text = node.text;
  return true;
}

bool ReadMap(const Site& site, const Node& node, Value* value) {
  if (node.kind == Node::Kind::kNull) return true;
  if (node.kind != Node::Kind::kMap) return site.Wrong(node);
  bool ok = true;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const Key& key = node.keys[i];
    const Node& item = node.items[i];
    std::string text;
    if (!CheckKey(site, key) || !ReadScalar(site, key, item, &text)) {
      ok = false;
    } else if (site.field.type == Type::kLearn) {
      const bool from_file = item.place.set < 0;
      value->learn[key.text] = {std::move(text), from_file ? item.place.line : 0,
                                from_file ? item.place.column : 0};
    } else {
      value->map[key.text] = std::move(text);
    }
  }
  return ok;
}

bool ReadFlag(const Site& site, const Node& node, bool* flag) {
  if (!IsPlain(node) || (node.text != "true" && node.text != "false")) {
    site.errors->Add(node.place, site.path + ".plain",
                     "got " + Tell(node) + ", expected true or false");
    return false;
  }
  *flag = node.text == "true";
  return true;
}

// {name: grpc, plain: true}, or with `list` {names: [grpc], plain: true}.
bool ReadPortFields(const Site& site, const Node& node, bool list, std::vector<Node>* names,
                    bool* plain) {
  const std::string field = list ? "names" : "name";
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const Node& item = node.items[i];
    if (node.keys[i].text == "plain") {
      if (!ReadFlag(site, item, plain)) return false;
    } else if (node.keys[i].text != field) {
      site.errors->Add(node.keys[i].place, site.path,
                       "got the unknown field " + Shown(node.keys[i].text) + ", expected " + field +
                           " or plain" + DidYouMean(node.keys[i].text, {field, "plain"}));
      return false;
    } else if (list && item.kind == Node::Kind::kList) {
      *names = item.items;
    } else {
      names->push_back(item);
    }
  }
  return true;
}

// One {key: text, action: …}. False after telling what is wrong with it.
bool ReadRule(const Site& site, const Node& node, const std::string& key, std::string* text,
              EndAction* action) {
  if (node.kind != Node::Kind::kMap) return site.Wrong(node);
  const Node* text_node = node.Find(key);
  const Node* action_node = node.Find("action");
  for (const Key& one : node.keys) {
    if (one.text == key || one.text == "action") continue;
    site.errors->Add(one.place, site.path,
                     "got the unknown field " + Shown(one.text) + ", expected " + key +
                         " and action" + DidYouMean(one.text, {key, "action"}));
    return false;
  }
  if (text_node == nullptr || action_node == nullptr) return site.Wrong(node);
  const auto known = ValueIn(kEndActions, action_node->text);
  const bool log = site.field.type == Type::kLogRules;
  if (!known || (log && *known == EndAction::kIgnore)) {
    site.errors->Add(
        action_node->place, site.path + ".action",
        "got " + Tell(*action_node) + ", expected one of retry, fail, " + (log ? "" : "ignore, ") +
            "restart_job, exclude_host" +
            DidYouMean(action_node->text, {"retry", "fail", "restart_job", "exclude_host"}));
    return false;
  }
  if (text_node->kind != Node::Kind::kScalar || text_node->text.empty() ||
      text_node->text.size() > 1024) {
    return site.Wrong(*text_node);
  }
  *text = text_node->text;
  *action = *known;
  return true;
}

bool ReadRules(const Site& site, const Node& node, Value* value) {
  if (node.kind != Node::Kind::kList) return site.Wrong(node);
  if (static_cast<double>(node.items.size()) > site.field.most) {
    site.errors->Add(
        node.place, site.path,
        "got a list of " + std::to_string(node.items.size()) + " rules, expected at most 64");
    return false;
  }
  for (const Node& item : node.items) {
    std::string text;
    EndAction action{};
    if (site.field.type == Type::kLogRules) {
      if (!ReadRule(site, item, "line", &text, &action)) return false;
      value->log_rules.push_back({std::move(text), action});
      continue;
    }
    if (!ReadRule(site, item, "code", &text, &action)) return false;
    if (!ParseExitMatch(text)) {
      site.errors->Add(item.Find("code")->place, site.path + ".code",
                       "got " + Tell(*item.Find("code")) +
                           ", expected an exit code from 1 to 255, a range such as 128-255, a "
                           "signal such as SIGKILL, or signal, out-of-memory, lost");
      return false;
    }
    value->exit_rules.push_back({std::move(text), action});
  }
  return true;
}

bool AddPort(const Site& site, const Node& name, bool plain, Value* value) {
  if (name.kind != Node::Kind::kScalar || !IsPlainName(name.text, kMaxPortName)) {
    site.errors->Add(name.place, site.path,
                     "got " + Tell(name) +
                         " as the name of a port, expected lower-case letters, "
                         "digits and '-', a letter first, at most 15");
    return false;
  }
  for (const Port& port : value->ports) {
    if (port.name != name.text) continue;
    site.errors->Add(name.place, site.path,
                     "got the port " + Shown(name.text) + " a second time, expected it once");
    return false;
  }
  value->ports.push_back({name.text, plain});
  return true;
}

bool ReadPorts(const Site& site, const Node& node, Value* value) {
  std::vector<Node> names;
  bool plain = false;
  if (node.kind == Node::Kind::kMap) {
    if (!ReadPortFields(site, node, true, &names, &plain)) return false;
    if (names.empty()) {
      value->ports.push_back({"main", plain});
      return true;
    }
    for (const Node& name : names) {
      if (!AddPort(site, name, plain, value)) return false;
    }
    return true;
  }
  if (node.kind != Node::Kind::kList) return site.Wrong(node);
  if (static_cast<double>(node.items.size()) > site.field.most) {
    site.errors->Add(
        node.place, site.path,
        "got a list of " + std::to_string(node.items.size()) + " ports, expected at most 16");
    return false;
  }
  for (const Node& item : node.items) {
    names.assign(1, item);
    plain = false;
    if (item.kind == Node::Kind::kMap) {
      names.clear();
      if (!ReadPortFields(site, item, false, &names, &plain)) return false;
      if (names.empty()) names.push_back(item);
    }
    if (!AddPort(site, names[0], plain, value)) return false;
  }
  return true;
}

bool ReadPod(const Site& site, const Node& node, Value* value) {
  const auto wrong = [&](const Place& place, const std::string& path, const std::string& sentence) {
    site.errors->Add(place, path, sentence);
  };
  const auto read = ReadPodValue(node, site.field.choices, site.path, wrong);
  if (!read) return false;
  const bool nothing = (read->is_object() && read->get_object().empty()) ||
                       (read->is_array() && read->get_array().empty());
  if (!nothing) value->text = ToText(*read);
  return value->text.size() <= kMaxPodValue || site.Wrong(node, " of at most 64 KiB");
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
  const Site site{field, path, errors};
  switch (field.type) {
    case Type::kText:
    case Type::kName:
      return ReadText(site, node, value);
    case Type::kRole:
      // "follows: ~" is nobody, also where the framework would have somebody.
      if (node.kind == Node::Kind::kNull && field.path.ends_with(".follows")) return true;
      if (node.kind != Node::Kind::kScalar || node.text.empty()) return site.Wrong(node);
      value->text = node.text;
      return true;
    case Type::kInteger:
      return ReadInteger(site, node, value);
    case Type::kNumber:
      return ReadNumber(site, node, value);
    case Type::kSize:
    case Type::kDuration:
      return ReadWithUnit(site, node, value);
    case Type::kChoice:
      return ReadChoice(site, node, value);
    case Type::kTexts:
    case Type::kRoles:
    case Type::kCommand:
      return ReadTexts(site, node, value);
    case Type::kTextMap:
    case Type::kVariables:
    case Type::kLearn:
      return ReadMap(site, node, value);
    case Type::kExitRules:
    case Type::kLogRules:
      return ReadRules(site, node, value);
    case Type::kPorts:
      return ReadPorts(site, node, value);
    case Type::kPodValue:
      return ReadPod(site, node, value);
    case Type::kSection:
    case Type::kSections:
      return false;
  }
  return false;
}

}  // namespace shoal::job
