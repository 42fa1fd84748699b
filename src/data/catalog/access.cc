#include "data/catalog/access.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/utf8.h"

namespace shoal::data {
namespace {

bool IsExcepted(const std::set<std::string>& except, const Asker& asker) {
  return std::ranges::any_of(except, [&](const std::string& one) { return IsMeant(one, asker); });
}

bool Names(const Grant& grant, const std::string& column) {
  return grant.columns.empty() || std::ranges::find(grant.columns, column) != grant.columns.end();
}

Mask MaskIn(const Grant& grant, const std::string& column) {
  const auto found = grant.masks.find(column);
  return found == grant.masks.end() ? Mask() : found->second;
}

std::string TextOf(const Asker& asker) {
  std::string teams;
  for (const std::string& team : asker.teams) teams += (teams.empty() ? "" : ", ") + team;
  return asker.user + (teams.empty() ? ", who is in no team" : " (teams: " + teams + ")");
}

class Evaluation {
 public:
  Evaluation(const Table& table, std::span<const TagPolicy> policies, const Asker& asker,
             WallTime now)
      : table_(table), policies_(policies), asker_(asker), owner_(asker.user == table.owner) {
    for (const Grant& grant : table.grants) {
      if (!IsMeant(grant.principal, asker)) continue;
      (grant.expires && *grant.expires <= now ? expired_ : live_).push_back(&grant);
    }
  }

  bool has_grants() const { return owner_ || !live_.empty(); }

  // Why the column may not be read; nothing if it may.
  std::optional<std::string> Refusal(const std::string& column) const {
    if (owner_) return std::nullopt;
    const auto tags = table_.tags.find(column);
    for (const TagPolicy& policy : policies_) {
      if (policy.mask || tags == table_.tags.end() || !tags->second.contains(policy.tag)) continue;
      if (IsExcepted(policy.except, asker_)) continue;
      return "its tag " + policy.tag + " is denied to all but " + Exceptions(policy.except);
    }
    if (!GrantsOf(column).empty()) return std::nullopt;
    const bool late =
        std::ranges::any_of(expired_, [&](const Grant* grant) { return Names(*grant, column); });
    return std::string(late ? "the grant has expired" : "there is no grant");
  }

  std::vector<const Grant*> GrantsOf(const std::string& column) const {
    std::vector<const Grant*> found;
    for (const Grant* grant : live_)
      if (Names(*grant, column)) found.push_back(grant);
    return found;
  }

  Mask MaskOf(const std::string& column) const {
    if (owner_) return {};
    Mask mask = MaskOfGrants(column);
    if (const auto rule = table_.masks.find(column);
        rule != table_.masks.end() && !IsExcepted(rule->second.except, asker_))
      mask = Stronger(mask, rule->second.mask);
    const auto tags = table_.tags.find(column);
    for (const TagPolicy& policy : policies_) {
      if (!policy.mask || tags == table_.tags.end() || !tags->second.contains(policy.tag)) continue;
      if (!IsExcepted(policy.except, asker_)) mask = Stronger(mask, *policy.mask);
    }
    return mask;
  }

  // The condition on rows for these columns: for each column one of its grants accepts the row.
  std::string Rows(const std::vector<size_t>& columns) const {
    if (owner_) return "";
    std::set<std::string> parts;
    for (const size_t column : columns) {
      const std::string one = RowsOf(GrantsOf(table_.columns[column].name));
      if (!one.empty()) parts.insert(one);
    }
    return Join(parts, " and ");
  }
  // Of a table without columns.
  std::string RowsOfAll() const { return owner_ ? "" : RowsOf(live_); }

  std::optional<WallTime> Until() const {
    std::optional<WallTime> until;
    if (owner_) return until;
    for (const Grant* grant : live_)
      if (grant->expires && (!until || *grant->expires < *until)) until = grant->expires;
    return until;
  }

 private:
  static std::string Exceptions(const std::set<std::string>& except) {
    std::string text = "the owner";
    for (const std::string& one : except) text += ", " + one;
    return text;
  }

  static std::string Join(const std::set<std::string>& parts, std::string_view word) {
    if (parts.size() == 1) return *parts.begin();
    std::string text;
    for (const std::string& part : parts) {
      if (!text.empty()) text += word;
      text += "(" + part + ")";
    }
    return text;
  }

  static std::string RowsOf(const std::vector<const Grant*>& grants) {
    std::set<std::string> parts;
    for (const Grant* grant : grants) {
      if (grant->rows.empty()) return "";
      parts.insert(grant->rows);
    }
    return Join(parts, " or ");
  }

  // A grant without a condition decides for all rows; of several with conditions, which may each
  // give other rows, the strongest mask hides what any of them hides.
  Mask MaskOfGrants(const std::string& column) const {
    std::optional<Mask> weakest;  // of grants of all rows
    Mask strongest;
    for (const Grant* grant : GrantsOf(column)) {
      const Mask mask = MaskIn(*grant, column);
      if (grant->rows.empty() && (!weakest || weakest->Hides(mask))) weakest = mask;
      strongest = Stronger(strongest, mask);
    }
    return weakest ? *weakest : strongest;
  }

  const Table& table_;
  const std::span<const TagPolicy> policies_;
  const Asker& asker_;
  const bool owner_;
  std::vector<const Grant*> live_;
  std::vector<const Grant*> expired_;
};

Status RefuseColumn(const Table& table, const Asker& asker, const std::string& column,
                    const std::string& why) {
  const bool tagged = why.starts_with("its tag");
  const std::string shown = EscapedUtf8(column);
  std::string remedy = tagged ? "; ask " + table.owner + " for an exception"
                              : "; its owner " + table.owner + " gives it: `shoal catalog grant " +
                                    table.full_name() + " --to user:" + asker.user + " --columns " +
                                    shown + "`";
  return PermissionDenied("column " + shown + " of " + table.full_name() + " for " + TextOf(asker) +
                          ": " + why + remedy);
}

Status RefuseTable(const Table& table, const Asker& asker) {
  return PermissionDenied("table " + table.full_name() + " for " + TextOf(asker) +
                          ": there is no grant; its owner " + table.owner +
                          " gives it: `shoal catalog grant " + table.full_name() +
                          " --to user:" + asker.user + "`");
}

// The columns that are wanted, in the table's order.
Result<std::vector<size_t>> Choose(const Table& table, std::span<const std::string> wanted,
                                   const Evaluation& evaluation, const Asker& asker) {
  std::set<size_t> chosen;
  for (const std::string& name : wanted) {
    const auto column = table.Find(name);
    if (!column)
      return InvalidArgument("table " + table.full_name() + " has no column " + EscapedUtf8(name) +
                             "; `shoal catalog show " + table.full_name() + "` lists them");
    if (const auto why = evaluation.Refusal(name)) return RefuseColumn(table, asker, name, *why);
    if (!chosen.insert(*column).second)
      return InvalidArgument("column " + EscapedUtf8(name) + " is named twice");
  }
  for (size_t i = 0; wanted.empty() && i < table.columns.size(); ++i)
    if (!evaluation.Refusal(table.columns[i].name)) chosen.insert(i);
  if (chosen.empty() && !table.columns.empty()) return RefuseTable(table, asker);
  return std::vector<size_t>(chosen.begin(), chosen.end());
}

}  // namespace

bool IsMeant(const std::string& principal, const Asker& asker) {
  if (principal == "everyone") return true;
  if (principal.starts_with("user:")) return principal.substr(5) == asker.user;
  return principal.starts_with("team:") && asker.teams.contains(principal.substr(5));
}

Result<Access> EffectiveAccess(const Table& table, std::span<const TagPolicy> policies,
                               const Asker& asker, std::span<const std::string> wanted,
                               WallTime now) {
  const Evaluation evaluation(table, policies, asker, now);
  if (!evaluation.has_grants() && wanted.empty()) return RefuseTable(table, asker);
  Access access;
  TRY_ASSIGN(access.columns, Choose(table, wanted, evaluation, asker));
  for (const size_t column : access.columns)
    access.masks.push_back(evaluation.MaskOf(table.columns[column].name));
  access.rows = table.columns.empty() ? evaluation.RowsOfAll() : evaluation.Rows(access.columns);
  access.until = evaluation.Until();
  access.restricted =
      access.columns.size() != table.columns.size() || !access.rows.empty() ||
      std::ranges::any_of(access.masks, [](const Mask& mask) { return mask != Mask(); });
  return access;
}

}  // namespace shoal::data
