#include "cli/terminal/stop_signals.h"

#include <signal.h>

#include <algorithm>

namespace shoal::cli {

std::vector<int> WithoutIgnored(std::initializer_list<int> signals) {
  std::vector<int> left;
  std::copy_if(signals.begin(), signals.end(), std::back_inserter(left), [](int signal) {
    struct sigaction inherited {};
    const bool may_be_ignored = signal == SIGHUP || signal == SIGINT || signal == SIGQUIT;
    return !may_be_ignored || ::sigaction(signal, nullptr, &inherited) != 0 ||
           inherited.sa_handler != SIG_IGN;
  });
  return left;
}

}  // namespace shoal::cli
