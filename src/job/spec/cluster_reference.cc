#include "job/spec/cluster_reference.h"

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
  bool role;  // "NAME.ROLE"
};

constexpr Kind kKinds[] = {
    {"index", ReferenceTo::kIndex, false},        {"host", ReferenceTo::kHost, false},
    {"hosts", ReferenceTo::kHosts, true},         {"count", ReferenceTo::kCount, true},
    {"addresses", ReferenceTo::kAddresses, true},
};

// Parses the text between the braces after "shoal.".
Result<ReferencePart> ParseOne(std::string_view inside) {
  const size_t dot = inside.find('.');
  const std::string_view name = inside.substr(0, dot);
  const bool role = dot != std::string_view::npos && dot + 1 < inside.size();
  if (inside == "braces") return ReferencePart{ReferenceTo::kText, std::string(kBraces)};
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) {
    names.emplace_back(kind.name);
    if (kind.name != name) continue;
    if (kind.role == role && (role || dot == std::string_view::npos)) {
      return ReferencePart{kind.to, role ? std::string(inside.substr(dot + 1)) : ""};
    }
    return InvalidArgument(
        "got " + PrintableText(std::string(kBegin) + std::string(inside) + "}}") +
        (kind.role ? ", expected the name of a role after it, such as "
                   : ", expected it without a role, as ") +
        std::string(kBegin) + std::string(name) + (kind.role ? ".worker}}" : "}}"));
  }
  return InvalidArgument(
      "got " + PrintableText(std::string(kBegin) + std::string(inside) + "}}") +
      ", expected one of index, host, hosts.ROLE, addresses.ROLE, count.ROLE, braces" +
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

}  // namespace shoal::job
