#include "job/spec/cluster_reference.h"

#include <algorithm>
#include <cctype>

#include "job/spec/job.h"
#include "job/text/errors.h"
#include "job/text/yaml_tree.h"

namespace shoal::job {
namespace {

constexpr std::string_view kBegin = "{{shoal.";
constexpr std::string_view kEnd = "}}";
constexpr std::string_view kBraces = "{{";
constexpr std::string_view kBracesReference = "{{shoal.braces}}";

struct Kind {
  std::string_view name;
  ReferenceTo to;
  std::string_view of;  // "a role" of "NAME.ROLE"; empty: it stands alone
};

constexpr std::string_view kRole = "a role";
constexpr std::string_view kSecretName = "a secret";
constexpr Kind kKinds[] = {
    {"index", ReferenceTo::kIndex, ""},
    {"host", ReferenceTo::kHost, ""},
    {"hosts", ReferenceTo::kHosts, kRole},
    {"count", ReferenceTo::kCount, kRole},
    {"addresses", ReferenceTo::kAddresses, kRole},
    {"secret", ReferenceTo::kSecret, kSecretName},
    {"secret_file", ReferenceTo::kSecretFile, kSecretName},
};
constexpr size_t kMaxSecretName = 63;
constexpr std::string_view kMark = "@shoal-secret";
constexpr std::string_view kValueMark = "@shoal-secret:";
constexpr std::string_view kFileMark = "@shoal-secret-file:";

bool IsSecret(ReferenceTo to) {
  return to == ReferenceTo::kSecret || to == ReferenceTo::kSecretFile;
}

// Parses the text between the braces after "shoal.".
Result<ReferencePart> ParseOne(std::string_view inside) {
  const size_t dot = inside.find('.');
  const std::string_view name = inside.substr(0, dot);
  const bool named = dot != std::string_view::npos && dot + 1 < inside.size();
  if (inside == "braces") return ReferencePart{ReferenceTo::kText, std::string(kBraces)};
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) {
    names.emplace_back(kind.name);
    if (kind.name != name) continue;
    const std::string got =
        "got " + PrintableText(std::string(kBegin) + std::string(inside) + "}}");
    if (named && IsSecret(kind.to) && !IsSecretName(inside.substr(dot + 1)))
      return InvalidArgument(got +
                             ", expected a secret's name of letters, digits, '-', '_' and '.'");
    if (kind.of.empty() != named && (named || dot == std::string_view::npos)) {
      return ReferencePart{kind.to, named ? std::string(inside.substr(dot + 1)) : ""};
    }
    if (kind.of.empty())
      return InvalidArgument(got + ", expected it without a role, as " + std::string(kBegin) +
                             std::string(name) + "}}");
    return InvalidArgument(got + ", expected the name of " + std::string(kind.of) +
                           " after it, such as " + std::string(kBegin) + std::string(name) +
                           (kind.of == kRole ? ".worker}}" : ".db-password}}"));
  }
  return InvalidArgument(
      "got " + PrintableText(std::string(kBegin) + std::string(inside) + "}}") +
      ", expected one of index, host, hosts.ROLE, addresses.ROLE, count.ROLE, secret.NAME, "
      "secret_file.NAME, braces" +
      DidYouMean(std::string(name), names));
}

}  // namespace

bool HasReference(std::string_view value) { return value.find(kBegin) != std::string_view::npos; }

std::string EscapeReferences(std::string_view text) {
  std::string escaped;
  for (size_t begin; (begin = text.find(kBegin)) != std::string_view::npos;) {
    escaped.append(text.substr(0, begin)).append(kBracesReference);
    escaped.append(kBegin.substr(kBraces.size()));
    text.remove_prefix(begin + kBegin.size());
  }
  return escaped.append(text);
}

Result<std::vector<ReferencePart>> ParseReferences(std::string_view value) {
  std::vector<ReferencePart> parts;
  while (!value.empty()) {
    const size_t begin = value.find(kBegin);
    if (begin != 0) {
      parts.push_back({ReferenceTo::kText, std::string(value.substr(0, begin))});
      if (begin == std::string_view::npos) break;
      value.remove_prefix(begin);
    }
    const size_t end = value.find(kEnd);
    if (end == std::string_view::npos) {
      return InvalidArgument("got '{{shoal.' without its end, expected '}}' after it");
    }
    TRY_ASSIGN(ReferencePart part, ParseOne(value.substr(kBegin.size(), end - kBegin.size())));
    parts.push_back(std::move(part));
    value.remove_prefix(end + kEnd.size());
  }
  return parts;
}

bool IsSecretName(std::string_view name) {
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return !name.empty() && name.size() <= kMaxSecretName && letter(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || c == '-' || c == '_' || c == '.'; });
}

std::string SecretReference(std::string_view name, bool as_file) {
  std::string text(kBegin);
  text.append(as_file ? "secret_file." : "secret.").append(name).append(kEnd);
  return text;
}

std::string SecretMark(std::string_view name, bool as_file) {
  std::string text(as_file ? kFileMark : kValueMark);
  return text.append(name).append("@");
}

std::optional<FoundSecretMark> FindSecretMark(std::string_view text, size_t from) {
  for (size_t at = from; (at = text.find(kMark, at)) != std::string_view::npos; ++at) {
    const std::string_view rest = text.substr(at);
    for (const std::string_view begin : {kValueMark, kFileMark}) {
      if (!rest.starts_with(begin)) continue;
      const std::string_view name =
          rest.substr(begin.size(), rest.find('@', begin.size()) - begin.size());
      const size_t size = begin.size() + name.size() + 1;
      if (IsSecretName(name) && size <= rest.size())
        return FoundSecretMark{at, at + size, std::string(name), begin == kFileMark};
    }
  }
  return std::nullopt;
}

std::string MarksAsReferences(std::string_view text) {
  std::string shown;
  size_t at = 0;
  while (const auto mark = FindSecretMark(text, at)) {
    shown.append(text.substr(at, mark->begin - at));
    shown.append(SecretReference(mark->name, mark->as_file));
    at = mark->end;
  }
  return shown.append(text.substr(at));
}

std::optional<ReferencePart> WholeSecret(std::string_view value) {
  if (!HasReference(value)) return std::nullopt;
  const auto parts = ParseReferences(value);
  if (!parts.ok() || parts->size() != 1 || !IsSecret((*parts)[0].to)) return std::nullopt;
  return (*parts)[0];
}

std::map<std::string, std::string> SecretsOf(const Job& job) {
  std::map<std::string, std::string> found;
  const auto add = [&](const std::string& path, const std::map<std::string, std::string>& env) {
    for (const auto& [variable, value] : env) {
      if (!HasReference(value)) continue;
      for (const ReferencePart& part : ParseReferences(value).value_or({}))
        if (IsSecret(part.to)) found.try_emplace(part.text, path + "." + variable);
    }
  };
  add("env", job.env);
  for (const Role& role : job.roles) add("roles." + role.name + ".env", role.env);
  return found;
}

}  // namespace shoal::job
