// What a job asks Slurm for, and which of its tasks goes where in what it got. Pure.
//
// An ordinary allocation is made of equal pieces ("tasks" in Slurm's words, cells in ours). A cell
// is big enough for a task of any role; small tasks of one role share cells. Roles without GPUs
// sit beside those with GPUs in the same cells, so that no GPU is asked for in vain. A
// heterogeneous allocation has several components, each of which is so made, for roles that ask
// Slurm for the same (ADR 89).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::slurm {

// What the allocation is made of: so many equal pieces, each big enough for a task of any role. A
// role whose tasks are small has several of them in one cell.
struct Cell {
  int count = 1;
  int cpus = 1;
  int64_t memory_mib = 0;  // 0: not asked for
  int gpus = 0;
};

// How many tasks of a role a cell holds, and whether others may sit beside them.
struct CellShare {
  int per_cell = 1;
  bool beside = false;  // it owns no cell, but has room in every one
  int component = 0;    // of whose cells
};

// One component.
struct CellPlan {
  Cell cell;
  job::Slurm slurm;                         // what it is asked for with
  std::map<std::string, CellShare> shares;  // of each of its roles but the coordinator
};

// The components of a job's allocation; an ordinary one has one. Roles that ask alike share one;
// they stand in the order of their first roles in the job file, whatever number of tasks there is
// now. InvalidArgument if one asks for more than 100,000 cells, or there are more than Slurm takes.
Result<std::vector<CellPlan>> PlanComponents(const DesiredJob& desired);

// Where a role's tasks go; nullptr for the coordinator, and for a role without tasks.
const CellShare* ShareOf(const std::vector<CellPlan>& plan, const std::string& role);

// "n1", "n[1-3,07-12]", "a1,b[2-3]-ib" → the names. At most 100,000; InvalidArgument otherwise.
Result<std::vector<std::string>> ExpandHosts(std::string_view list);
// "2(x3),1" → 2 2 2 1.
Result<std::vector<int>> ExpandCounts(std::string_view list);

// Who is in which cell. Plain value.
class CellPlacement {
 public:
  // `nodes` and `cells`: of a component, in its order.
  void Add(int component, const std::vector<std::string>& nodes, const std::vector<int>& cells);

  // A cell for one more task, which it then holds; nothing if there is no room. `fresh`: no step
  // holds that part of the cell. Slurm gives a step's processors back when all of the step has
  // ended, so who takes the place of one of its tasks must overlap with it.
  struct CellClaim {
    size_t cell = 0;
    bool fresh = true;
  };
  // Neither is on a node of `avoided`.
  using Nodes = std::vector<std::string>;
  std::optional<CellClaim> Take(const std::string& role, const CellShare& share,
                                const Nodes& avoided = {});
  // The least used cell that the component has, be it full.
  std::optional<size_t> TakeAnyway(const std::string& role, int component,
                                   const Nodes& avoided = {});
  // The task has ended.
  void Release(size_t cell, const std::string& role);
  // … and the step that held its place.
  void LetGo(size_t cell, const std::string& role);
  // Its cells are gone.
  void LoseNode(const std::string& node);
  const std::string& node(size_t cell) const { return cells_[cell].node; }
  bool lost(size_t cell) const { return cells_[cell].lost; }

 private:
  struct Place {
    int component = 0;
    std::string node;
    bool lost = false;
    std::string owner;  // empty: free for any role
    std::map<std::string, int> used;
    std::map<std::string, int> held;  // by steps
  };
  // `fresh`: one that no step holds.
  std::optional<size_t> Choose(const std::string& role, const CellShare& share, bool fresh,
                               const Nodes& avoided) const;

  std::vector<Place> cells_;
};

}  // namespace shoal::engine::slurm
