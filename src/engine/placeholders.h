// Placeholders in the arguments and variables of a DesiredTask for values that only the engine
// knows. Each engine replaces them in its own way: by the value, or by a reference to a variable of
// a pod ("$(POD_IP)").
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace shoal::engine {

// The number of the task's incarnation. Replaced by all engines.
inline constexpr const char* kIncarnationPlaceholder = "{incarnation}";

// The following are replaced only where controller and tasks share no directory
// (Engine::SharesJobDirectory is false).
// "HOST:PORT" at which the job's tasks reach its coordinator. A host name is resolved at every
// attempt to connect, so it need not resolve yet.
inline constexpr const char* kCoordinatorPlaceholder = "{coordinator}";
// The port on which the coordinator listens, on all interfaces.
inline constexpr const char* kPortPlaceholder = "{port}";
// The numeric address at which the other tasks reach this one.
inline constexpr const char* kHostPlaceholder = "{host}";
// An empty, writable directory for this task alone.
inline constexpr const char* kDirPlaceholder = "{dir}";
// The read-only directory that holds DesiredJob::bootstrap_files.
inline constexpr const char* kBootstrapDirPlaceholder = "{seed}";
// The task's index. With it all tasks of a role have identical arguments.
inline constexpr const char* kIndexPlaceholder = "{index}";

// Placeholder → its value.
using PlaceholderValues = std::map<std::string, std::string>;

// `text` with every placeholder in `values` replaced. Other braces stay, and replacements are not
// expanded again. O(text).
std::string ExpandPlaceholders(std::string_view text, const PlaceholderValues& values);

}  // namespace shoal::engine
