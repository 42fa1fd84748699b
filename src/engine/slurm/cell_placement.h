// The size of a job's Slurm allocation, and the placement of its tasks in it. Pure.
//
// An ordinary allocation consists of equal cells; a cell is one "task" of the Slurm job. A cell is
// large enough for one task of any role, and small tasks of one role share a cell. Roles without
// GPUs share cells with roles that have GPUs, so no GPU stays unused. A heterogeneous allocation
// has several components, one for each group of roles with the same Slurm settings (ADR 89).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::slurm {

// Number and size of the cells of a component.
struct Cell {
  int count = 1;
  int cpus = 1;
  int64_t memory_mib = 0;  // 0: not requested
  int gpus = 0;
};

// How the tasks of a role use cells.
struct CellShare {
  int per_cell = 1;
  bool beside = false;  // owns no cell; its tasks fit into cells of other roles
  int component = 0;    // component of the allocation
};

// One component of an allocation.
struct CellPlan {
  Cell cell;
  job::Slurm slurm;                         // its sbatch options
  std::map<std::string, CellShare> shares;  // by role, without the coordinator
};

// The components of a job's allocation; an ordinary one has one. Roles with equal settings share a
// component. Components are in the order of their first roles in the job file, independent of the
// current number of tasks. InvalidArgument for more than 100,000 cells in a component, or more
// components than Slurm accepts.
Result<std::vector<CellPlan>> PlanComponents(const DesiredJob& desired);

// The share of a role; nullptr for the coordinator and for a role without tasks.
const CellShare* ShareOf(const std::vector<CellPlan>& plan, const std::string& role);

// "n1", "n[1-3,07-12]", "a1,b[2-3]-ib" → the names. At most 100,000; InvalidArgument otherwise.
Result<std::vector<std::string>> ExpandHosts(std::string_view list);
// "2(x3),1" → 2 2 2 1.
Result<std::vector<int>> ExpandCounts(std::string_view list);

// Which tasks use which cell. Plain value; not thread-safe.
class CellPlacement {
 public:
  // Adds a component: its nodes, and the number of cells on each.
  void Add(int component, const std::vector<std::string>& nodes, const std::vector<int>& cells);

  // Result of Take. `fresh`: no running step holds that part of the cell. Slurm frees a step's
  // processors only when the whole step has ended, so a task that replaces one of its tasks must
  // run with --overlap.
  struct CellClaim {
    size_t cell = 0;
    bool fresh = true;
  };
  // Reserves a cell for one more task, on a node that is not in `avoided`; nothing if no cell has
  // room.
  using Nodes = std::vector<std::string>;
  std::optional<CellClaim> Reserve(const std::string& role, const CellShare& share,
                                   const Nodes& avoided = {});
  // Reserves the least used cell of a component even if it is full.
  std::optional<size_t> ReserveLeastUsed(const std::string& role, int component,
                                         const Nodes& avoided = {});
  // Ends the reservation of a task that has ended.
  void Release(size_t cell, const std::string& role);
  // Ends the reservation of the step that started the task.
  void ReleaseStep(size_t cell, const std::string& role);
  // Removes the cells of a node that failed.
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
    std::map<std::string, int> held;  // by running steps
  };
  // `fresh`: only cells that no step holds.
  std::optional<size_t> Choose(const std::string& role, const CellShare& share, bool fresh,
                               const Nodes& avoided) const;

  std::vector<Place> cells_;
};

}  // namespace shoal::engine::slurm
