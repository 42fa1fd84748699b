// Which signals a command obeys.
#pragma once

#include <initializer_list>
#include <vector>

namespace shoal::cli {

// `signals` without those of SIGHUP, SIGINT and SIGQUIT that this process was started to ignore: by
// nohup, by `trap ''`, or by `&` in a shell without job control. Watching one would end a job that
// was meant to outlive its terminal. Call it before any of them is watched.
std::vector<int> WithoutIgnored(std::initializer_list<int> signals);

}  // namespace shoal::cli
