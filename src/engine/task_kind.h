// The two kinds of tasks that engines run. Records, labels and events carry only a task's role, so
// the kind is derived from it here and nowhere else.
#pragma once

#include <cstdint>
#include <string_view>

namespace shoal::engine {

// Role of the task that is the job's coordinator (index 0). No role of a job file has this name.
inline constexpr const char* kCoordinatorRole = "coordinator";

enum class TaskKind : uint8_t {
  kLauncher,     // starts and supervises the program of one task of the job file
  kCoordinator,  // coordinates the job's launchers; one per job
};

inline TaskKind KindOfRole(std::string_view role) {
  return role == kCoordinatorRole ? TaskKind::kCoordinator : TaskKind::kLauncher;
}
inline bool IsCoordinator(std::string_view role) {
  return KindOfRole(role) == TaskKind::kCoordinator;
}

}  // namespace shoal::engine
