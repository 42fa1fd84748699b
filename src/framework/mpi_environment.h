// Environment of framework mpi: tells the mpirun in role `launcher` (Open MPI, MPICH, Intel MPI)
// which hosts to use and how to start ranks in the tasks of role `worker` (docs/adr/0070).
// Variables that depend on the launcher's local files are added later by
// rendezvous/framework_services/mpi_launch.h.
//
// Source: Open MPI 4.1 ompi_info and orterun(1), PRRTE prte-map(1); MPICH 4.0 mpiexec.hydra.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class MpiEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kMpi; }
  // A worker's `processes` are MPI slots: its task runs one daemon, and mpirun starts the ranks.
  bool StartsProcesses() const override { return false; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

}  // namespace shoal::framework
