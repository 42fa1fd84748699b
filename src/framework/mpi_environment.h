// The dialect of framework mpi: role `launcher` finds by which hosts and by which means its mpirun
// (Open MPI, MPICH, Intel MPI) starts ranks in the tasks of role `worker` (docs/adr/0070). What
// depends on the launcher's own files is added there (rendezvous/framework_services/mpi_launch.h).
//
// Source: Open MPI 4.1 ompi_info and orterun(1), PRRTE prte-map(1); MPICH 4.0 mpiexec.hydra.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class MpiEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kMpi; }
  // A worker's `processes` are its slots: mpirun starts them, and its task is one daemon.
  bool StartsProcesses() const override { return false; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

}  // namespace shoal::framework
