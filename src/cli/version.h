// What this binary calls itself.
#pragma once

#include <string>

namespace shoal::cli {

// "0.1.0", or "0.1.0+a4fc525" of a checkout.
std::string Version();
// "shoal 0.1.0+a4fc525"
std::string VersionLine();

}  // namespace shoal::cli
