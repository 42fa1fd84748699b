// Marks: what stands in the words and variables of a DesiredTask for things that only its engine
// knows. Every engine fills them in, each in its own way: a process's arguments, or a reference to
// a variable of a pod ("$(POD_IP)").
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace shoal::engine {

// The number of the task's incarnation. All engines.
inline constexpr const char* kIncarnationPlaceholder = "{incarnation}";

// Where controller and tasks share no directory (Engine::SharesJobDirectory):
// "HOST:PORT" at which the job's tasks reach its coordinator. A name is resolved again at every
// dial, and one that does not resolve yet is dialled again.
inline constexpr const char* kCoordinatorPlaceholder = "{coordinator}";
// The coordinator listens here, on all interfaces.
inline constexpr const char* kPortPlaceholder = "{port}";
// The numeric address at which the other tasks reach this one.
inline constexpr const char* kHostPlaceholder = "{host}";
// An empty directory of the task's own, which it may write to.
inline constexpr const char* kDirPlaceholder = "{dir}";
// The directory that holds DesiredJob::bootstrap_files, which the task may only read.
inline constexpr const char* kBootstrapDirPlaceholder = "{seed}";
// The task's index, so that all tasks of a role have the same words.
inline constexpr const char* kIndexPlaceholder = "{index}";

// Mark → what stands in its place.
using PlaceholderValues = std::map<std::string, std::string>;

// `text` with each mark that `values` names replaced; other braces stay. O(text).
std::string ExpandPlaceholders(std::string_view text, const PlaceholderValues& values);

}  // namespace shoal::engine
