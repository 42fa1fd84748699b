#include "engine/slurm/cell_placement.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace shoal::engine::slurm {
namespace {

constexpr size_t kMaxHosts = 100'000;
constexpr size_t kMaxComponents = 128;  // MAX_HET_JOB_COMPS of Slurm

// Number and size of a role's tasks.
struct RoleRequirement {
  std::string role;
  int count = 0;
  int cpus = 1;
  int64_t mib = 0;
  int gpus = 0;
};

std::vector<RoleRequirement> RoleRequirements(const DesiredJob& desired) {
  std::vector<RoleRequirement> needs;
  for (const DesiredTask& task : desired.tasks) {
    if (task.kind() == TaskKind::kCoordinator) continue;
    auto need = std::find_if(needs.begin(), needs.end(),
                             [&](const RoleRequirement& one) { return one.role == task.role; });
    if (need == needs.end()) {
      RoleRequirement fresh;
      fresh.role = task.role;
      fresh.cpus = std::max(1, static_cast<int>(std::ceil(task.resources.cpu_reserved())));
      fresh.mib = (task.resources.memory_bytes + (1 << 20) - 1) >> 20;
      fresh.gpus = task.resources.gpu;
      need = needs.insert(needs.end(), fresh);
    }
    ++need->count;
  }
  for (RoleRequirement& need : needs) {
    const auto most = desired.max_tasks.find(need.role);
    if (most != desired.max_tasks.end()) need.count = std::max(need.count, most->second);
  }
  return needs;
}

int PerCell(const Cell& cell, const RoleRequirement& need) {
  int64_t most = cell.cpus / need.cpus;
  if (need.mib > 0) most = std::min(most, cell.memory_mib / need.mib);
  if (need.gpus > 0) most = std::min<int64_t>(most, cell.gpus / need.gpus);
  return static_cast<int>(std::max<int64_t>(most, 1));
}

int CountIn(const std::map<std::string, int>& counts, const std::string& role) {
  const auto found = counts.find(role);
  return found == counts.end() ? 0 : found->second;
}

void CountDown(std::map<std::string, int>* counts, const std::string& role) {
  const auto found = counts->find(role);
  if (found != counts->end() && --found->second <= 0) counts->erase(found);
}

bool IsIn(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Reads a number with its leading zeros: the width is kept.
bool Number(std::string_view text, int64_t* value) {
  constexpr size_t kMaxDigits = 9;
  if (text.empty() || text.size() > kMaxDigits) return false;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && rest == text.data() + text.size() && *value >= 0;
}

std::vector<std::string_view> Split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = std::min(text.find(mark, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

Status BadHosts(std::string_view list) {
  return InvalidArgument("a list of nodes: got \"" + std::string(list.substr(0, 200)) +
                         "\", expected names such as n1 or n[1-3,7]");
}

// Expands one name with at most three pairs of brackets.
Status ExpandOne(std::string_view all, const std::string& head, std::string_view rest, int depth,
                 std::vector<std::string>* hosts) {
  const size_t open = rest.find('[');
  if (open == std::string_view::npos) {
    if (rest.find(']') != std::string_view::npos || hosts->size() >= kMaxHosts)
      return BadHosts(all);
    const std::string name = head + std::string(rest);
    if (name.empty()) return BadHosts(all);
    hosts->push_back(name);
    return Status::Ok();
  }
  const size_t close = rest.find(']', open);
  if (close == std::string_view::npos || depth == 3) return BadHosts(all);
  const std::string before = head + std::string(rest.substr(0, open));
  for (const std::string_view range : Split(rest.substr(open + 1, close - open - 1), ',')) {
    const size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    int64_t first = 0;
    int64_t last = 0;
    if (!Number(low, &first)) return BadHosts(all);
    last = first;
    if (dash != std::string_view::npos && !Number(range.substr(dash + 1), &last))
      return BadHosts(all);
    if (last < first || last - first >= static_cast<int64_t>(kMaxHosts)) return BadHosts(all);
    for (int64_t number = first; number <= last; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
      TRY(ExpandOne(all, before + digits, rest.substr(close + 1), depth + 1, hosts));
    }
  }
  return Status::Ok();
}

// Whether the role has tasks now or may get some.
bool MayHaveTasks(const DesiredJob& desired, const std::string& role) {
  return desired.max_tasks.contains(role) ||
         std::any_of(desired.tasks.begin(), desired.tasks.end(),
                     [&](const DesiredTask& task) { return task.role == role; });
}

job::Slurm WithAsk(job::Slurm slurm, const job::SlurmSettings& ask) {
  const auto take = [](const std::string& asked, std::string* value) {
    if (!asked.empty()) *value = asked;
  };
  take(ask.partition, &slurm.partition);
  take(ask.account, &slurm.account);
  take(ask.qos, &slurm.qos);
  take(ask.constraint, &slurm.constraint);
  take(ask.reservation, &slurm.reservation);
  take(ask.gpu_type, &slurm.gpu_type);
  if (!ask.options.empty()) slurm.options = ask.options;
  if (!(ask == job::SlurmSettings())) slurm.nodes = ask.nodes;
  return slurm;
}

// The size and number of cells for all of these roles.
Status PlanCells(const std::vector<RoleRequirement>& needs, CellPlan* plan) {
  plan->cell.count = 0;
  const bool gpus = std::any_of(needs.begin(), needs.end(),
                                [](const RoleRequirement& need) { return need.gpus > 0; });
  for (const RoleRequirement& need : needs) {
    if (gpus && need.gpus == 0) continue;
    plan->cell.cpus = std::max(plan->cell.cpus, need.cpus);
    plan->cell.memory_mib = std::max(plan->cell.memory_mib, need.mib);
    plan->cell.gpus = std::max(plan->cell.gpus, need.gpus);
  }
  int64_t count = 0;
  for (const RoleRequirement& need : needs) {
    if (gpus && need.gpus == 0) continue;
    const int per_cell = PerCell(plan->cell, need);
    plan->shares[need.role] = {per_cell, false};
    count += (need.count + per_cell - 1) / per_cell;
  }
  count = std::max<int64_t>(count, 1);
  if (count > job::kMaxTasks) return InvalidArgument("the job asks for more than 100000 tasks");
  plan->cell.count = static_cast<int>(count);
  const Cell owners = plan->cell;
  for (const RoleRequirement& need : needs) {
    if (!gpus || need.gpus > 0) continue;
    const int per_cell = std::max(1, (need.count + owners.count - 1) / owners.count);
    plan->shares[need.role] = {per_cell, true};
    plan->cell.cpus += per_cell * need.cpus;
    if (owners.memory_mib > 0) plan->cell.memory_mib += per_cell * need.mib;
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<CellPlan>> PlanComponents(const DesiredJob& desired) {
  std::vector<CellPlan> plan;
  std::map<std::string, size_t> places;
  for (const auto& [role, ask] : desired.slurm_settings) {
    if (!MayHaveTasks(desired, role)) continue;
    job::Slurm slurm = WithAsk(desired.slurm, ask);
    size_t at = 0;
    while (at < plan.size() && !(plan[at].slurm == slurm)) ++at;
    if (at == plan.size()) plan.push_back({{}, std::move(slurm), {}});
    places[role] = at;
  }
  if (plan.size() < 2) {
    job::Slurm slurm = plan.empty() ? desired.slurm : std::move(plan[0].slurm);
    plan.assign(1, {{}, std::move(slurm), {}});
  }
  if (plan.size() > kMaxComponents)
    return InvalidArgument("the roles ask Slurm for " + std::to_string(plan.size()) +
                           " kinds of nodes, expected at most " + std::to_string(kMaxComponents));
  std::vector<std::vector<RoleRequirement>> needs(plan.size());
  for (RoleRequirement& need : RoleRequirements(desired)) {
    const size_t at = plan.size() == 1 ? 0 : places[need.role];
    needs[at].push_back(std::move(need));
  }
  for (size_t at = 0; at < plan.size(); ++at) {
    TRY(PlanCells(needs[at], &plan[at]));
    for (auto& [role, share] : plan[at].shares) share.component = static_cast<int>(at);
  }
  return plan;
}

const CellShare* ShareOf(const std::vector<CellPlan>& plan, const std::string& role) {
  for (const CellPlan& component : plan) {
    const auto share = component.shares.find(role);
    if (share != component.shares.end()) return &share->second;
  }
  return nullptr;
}

Result<std::vector<std::string>> ExpandHosts(std::string_view list) {
  std::vector<std::string> hosts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    TRY(ExpandOne(list, "", list.substr(begin, i - begin), 0, &hosts));
    begin = i + 1;
  }
  return hosts;
}

Result<std::vector<int>> ExpandCounts(std::string_view list) {
  std::vector<int> counts;
  for (std::string_view part : Split(list, ',')) {
    int64_t times = 1;
    int64_t count = 0;
    const size_t open = part.find("(x");
    bool fine = true;
    if (open != std::string_view::npos) {
      fine = part.ends_with(')') && Number(part.substr(open + 2, part.size() - open - 3), &times);
      part = part.substr(0, open);
    }
    fine = fine && Number(part, &count) && count <= job::kMaxTasks;
    fine = fine && counts.size() + static_cast<size_t>(times) <= kMaxHosts;
    if (!fine)
      return InvalidArgument("numbers of tasks: got \"" + std::string(list.substr(0, 200)) +
                             "\", expected such as 2(x3),1");
    counts.insert(counts.end(), static_cast<size_t>(times), static_cast<int>(count));
  }
  return counts;
}

void CellPlacement::Add(int component, const std::vector<std::string>& nodes,
                        const std::vector<int>& cells) {
  for (size_t i = 0; i < nodes.size() && i < cells.size(); ++i) {
    for (int k = 0; k < cells[i]; ++k) cells_.push_back({component, nodes[i], false, "", {}, {}});
  }
}

std::optional<size_t> CellPlacement::Choose(const std::string& role, const CellShare& share,
                                            bool fresh, const Nodes& avoided) const {
  const auto& [per_cell, beside, component] = share;
  std::optional<size_t> best;
  for (size_t i = 0; i < cells_.size(); ++i) {
    const Place& place = cells_[i];
    const int used = CountIn(place.used, role);
    const int taken = fresh ? std::max(used, CountIn(place.held, role)) : used;
    const bool others = fresh && place.owner.empty() && !place.held.empty() && !beside;
    if (place.component != component || place.lost || taken >= per_cell || others) continue;
    if (IsIn(avoided, place.node)) continue;
    if (beside) {  // the cell with the fewest of them
      if (!best || used < CountIn(cells_[*best].used, role)) best = i;
    } else if (place.owner == role) {
      return i;
    } else if (place.owner.empty() && !best) {
      best = i;
    }
  }
  return best;
}

std::optional<CellPlacement::CellClaim> CellPlacement::Reserve(const std::string& role,
                                                               const CellShare& share,
                                                               const Nodes& avoided) {
  CellClaim taken;
  auto cell = Choose(role, share, true, avoided);
  taken.fresh = cell.has_value();
  if (!cell) cell = Choose(role, share, false, avoided);
  if (!cell) return std::nullopt;
  taken.cell = *cell;
  ++cells_[*cell].used[role];
  if (taken.fresh) ++cells_[*cell].held[role];
  if (!share.beside) cells_[*cell].owner = role;
  return taken;
}

std::optional<size_t> CellPlacement::ReserveLeastUsed(const std::string& role, int component,
                                                      const Nodes& avoided) {
  std::optional<size_t> best;
  int least = 0;
  for (size_t i = 0; i < cells_.size(); ++i) {
    const Place& place = cells_[i];
    if (place.component != component || place.lost || IsIn(avoided, place.node)) continue;
    int used = 0;
    for (const auto& [one, count] : place.used) used += count;
    if (best && used >= least) continue;
    best = i;
    least = used;
  }
  if (best) ++cells_[*best].used[role];
  return best;
}

void CellPlacement::Release(size_t cell, const std::string& role) {
  Place& place = cells_[cell];
  CountDown(&place.used, role);
  if (place.owner == role && CountIn(place.used, role) == 0) place.owner.clear();
}

void CellPlacement::ReleaseStep(size_t cell, const std::string& role) {
  CountDown(&cells_[cell].held, role);
}

void CellPlacement::LoseNode(const std::string& node) {
  for (Place& place : cells_) place.lost = place.lost || place.node == node;
}

}  // namespace shoal::engine::slurm
