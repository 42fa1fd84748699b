#include "import/kubernetes/pod_environment.h"

#include <algorithm>
#include <cctype>

#include "job/file/fields.h"
#include "job/spec/cluster_reference.h"
#include "job/spec/framework.h"

namespace shoal::importer {
namespace {

constexpr size_t kLongestName = 256;
// Limits for what references may add to one text, and to all variables or the command of a role, so
// that nested references cannot exhaust memory. Linux accepts no longer variable or argument.
constexpr size_t kMostBytes = 131'072;
constexpr size_t kMostOfRole = size_t{1} << 20;

// A piece of a text that is split at its references.
struct Piece {
  std::string text;        // literal text, or the name of a variable
  bool reference = false;  // "$(NAME)"
};

// The kubelet's rule: "$$" is "$"; "$(" begins a reference if a ")" follows; any other "$" is
// literal.
std::vector<Piece> Cut(const std::string& text) {
  std::vector<Piece> pieces(1);
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '$' && i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t length = next == '(' ? std::string_view(text).substr(i, kLongestName).find(')')
                                      : std::string_view::npos;
    if (length != std::string_view::npos) {
      pieces.push_back({text.substr(i + 2, length - 2), true});
      pieces.emplace_back();
      i += length;
      continue;
    }
    pieces.back().text += text[i];
    if (next == '$') ++i;
  }
  return pieces;
}

std::string Unexpanded(const std::string& name) { return "$(" + name + ")"; }

bool IsKnownAtStart(const std::string& name, const std::map<std::string, std::string>& env,
                    job::Framework framework) {
  const auto found = env.find(name);
  if (found != env.end()) return job::HasReference(found->second);
  return job::IsReservedVariable(name) || job::IsSetByFramework(framework, name);
}

// Quotes a text for a shell.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

using OptionalField = std::optional<KnownPodField>;

// The name of a label or annotation: "a/b" of "metadata.labels['a/b']". Empty for other fields.
std::string LabelOf(const std::string& field) {
  for (const std::string_view begin : {"metadata.labels['", "metadata.annotations['"}) {
    if (field.starts_with(begin) && field.ends_with("']"))
      return field.substr(begin.size(), field.size() - begin.size() - 2);
  }
  return "";
}

// nullopt for fields that only the cluster knows.
OptionalField FieldValue(const std::string& field, const KnownPodFields& known,
                         const job::Role& role, const job::Job& job) {
  const auto found = known.find(LabelOf(field));
  if (found != known.end()) return found->second;
  const auto value = [](std::string text) { return KnownPodField{std::move(text), ""}; };
  if (field == "status.podIP") return value("{{shoal.host}}");
  if (field == "metadata.namespace" && !job.kubernetes.name_space.empty()) {
    return value(job.kubernetes.name_space);
  }
  if (field == "metadata.name" && !job.name.empty()) {
    return value(job.name + "-" + role.name + "-{{shoal.index}}");
  }
  for (const char* label : {"/replica-index']", "/task-index']", "/job-completion-index']"}) {
    if (field.starts_with("metadata.") && field.ends_with(label)) return value("{{shoal.index}}");
  }
  return std::nullopt;
}

void ReadValueFrom(const std::string& name, FieldReader* variable, const KnownPodFields& known,
                   job::Role* role, JobBuilder* builder) {
  const job::Node* source = variable->ReadNode("valueFrom");
  const job::Node* reference = source->Find("fieldRef");
  const job::Node* field = reference == nullptr ? nullptr : reference->Find("fieldPath");
  const auto value =
      field == nullptr ? std::nullopt : FieldValue(field->text, known, *role, *builder->job());
  if (value && IsVariableName(name)) {
    builder->SetVariable(role, name, value->value, variable);
    variable->AddLoss(
        "valueFrom",
        name + " came from the pod's field " + job::PrintableText(field->text) + "; kept as " +
            (value->meaning.empty()
                 ? job::PrintableText(value->value) + ", by the job's own addresses and names"
                 : value->meaning),
        true);
    return;
  }
  variable->AddLoss("valueFrom",
                    name +
                        " came from the cluster (a secret, a field of the pod); not kept: there is "
                        "no cluster to ask; give it with --set roles." +
                        role->name + ".env." + name + "=VALUE");
}

void ReportUnresolved(const std::set<std::string>& names, FieldReader* from,
                      const std::string& advice) {
  std::string list;
  for (const std::string& name : names) {
    if (LooksLikeVariable(name)) list += (list.empty() ? "" : ", ") + Unexpanded(name);
  }
  if (list.empty()) return;
  from->AddLoss("value",
                list + " stays as it is: no variable of that name is known before; " + advice);
}

}  // namespace

bool LooksLikeVariable(const std::string& name) {
  return IsVariableName(name) && std::none_of(name.begin(), name.end(),
                                              [](unsigned char c) { return std::islower(c) != 0; });
}

std::string ExpandReferences(const std::string& text, const std::map<std::string, std::string>& env,
                             std::set<std::string>* unresolved, size_t* budget) {
  std::string out;
  size_t left = std::min(kMostBytes, budget == nullptr ? kMostBytes : *budget);
  const size_t before = left;
  for (const Piece& piece : Cut(text)) {
    const auto known = piece.reference ? env.find(piece.text) : env.end();
    if (!piece.reference) {
      out += piece.text;
    } else if (known != env.end() && known->second.size() <= left) {
      out += known->second;
      left -= known->second.size();
    } else {
      out += Unexpanded(piece.text);
      if (unresolved != nullptr) unresolved->insert(piece.text);
    }
  }
  if (budget != nullptr) *budget -= before - left;
  return out;
}

std::vector<std::string> ExpandCommand(const std::vector<std::string>& command,
                                       const std::map<std::string, std::string>& env,
                                       job::Framework framework,
                                       std::set<std::string>* unresolved) {
  std::map<std::string, std::string> known;
  for (const auto& [name, value] : env) {
    if (!job::HasReference(value)) known.emplace(name, value);
  }
  std::vector<std::string> words;
  std::string line = "exec";
  bool shell = false;
  size_t budget = kMostOfRole;
  size_t budget_of_words = kMostOfRole;
  for (const std::string& word : command) {
    std::string quoted;
    for (const Piece& piece : Cut(word)) {
      if (piece.reference && IsKnownAtStart(piece.text, env, framework)) {
        quoted += "\"$" + piece.text + "\"";
        shell = true;
      } else if (piece.reference) {
        quoted += Quoted(ExpandReferences(Unexpanded(piece.text), known, unresolved, &budget));
      } else if (!piece.text.empty()) {
        quoted += Quoted(piece.text);
      }
    }
    line += " " + (quoted.empty() ? "''" : quoted);
    if (!shell) words.push_back(ExpandReferences(word, known, nullptr, &budget_of_words));
  }
  return shell ? std::vector<std::string>{"sh", "-c", line} : words;
}

void ReadPodEnvironment(FieldReader* container, const KnownPodFields& known, job::Role* role,
                        JobBuilder* builder) {
  const std::string at = "roles." + role->name + ".env";
  size_t budget = kMostOfRole;
  for (FieldReader& variable : container->ReadObjects("env")) {
    variable.set_at(at);
    const auto name = variable.ReadText("name");
    const auto value = variable.ReadText("value");
    if (variable.HasField("valueFrom")) {
      ReadValueFrom(name.value_or("NAME"), &variable, known, role, builder);
    } else if (!name) {
      variable.AddError("name", "got a variable without a name, expected one");
    } else {
      std::set<std::string> unresolved;
      builder->SetVariable(role, *name,
                           ExpandReferences(job::EscapeReferences(value.value_or("")), role->env,
                                            &unresolved, &budget),
                           &variable);
      ReportUnresolved(
          unresolved, &variable,
          "give the whole value with --set roles." + role->name + ".env." + *name + "=VALUE");
    }
    variable.ReportUnread("EnvVar");
  }
  if (container->ReadNode("envFrom") != nullptr) {
    container->set_at(at);
    container->AddLoss(
        "envFrom",
        "variables came from a config map or secret; not kept: there is no cluster to "
        "ask; write them into the role's env");
  }
}

}  // namespace shoal::importer
