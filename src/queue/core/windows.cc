#include "queue/core/windows.h"

#include <algorithm>

namespace shoal::queue {

WindowView ViewWindows(const Policy& policy, const std::string& flavor, Millis now) {
  WindowView view;
  for (const MaintenanceWindow& window : policy.windows) {
    const bool applies =
        window.flavors.empty() ||
        std::find(window.flavors.begin(), window.flavors.end(), flavor) != window.flavors.end();
    if (!applies || window.until <= now) continue;
    if (window.from <= now) {
      view.open = false;
      view.until = std::max(view.until, window.until);
    } else {
      view.next = std::min(view.next, window.from);
    }
  }
  return view;
}

}  // namespace shoal::queue
