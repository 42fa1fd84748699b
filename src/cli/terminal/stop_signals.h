// Selection of the signals that a command handles.
#pragma once

#include <initializer_list>
#include <vector>

namespace shoal::cli {

// Returns `signals` without SIGHUP, SIGINT and SIGQUIT if this process was started with them
// ignored: by nohup, by `trap ''`, or by `&` in a shell without job control. Handling them would
// end a job that must outlive its terminal. Must be called before any of them is handled.
std::vector<int> WithoutIgnored(std::initializer_list<int> signals);

}  // namespace shoal::cli
