// The version of this binary.
#pragma once

#include <string>

namespace shoal::cli {

// "0.1.0", or "0.1.0+a4fc525" for a build from a git checkout.
std::string Version();
// "shoal 0.1.0+a4fc525"
std::string VersionLine();
// The same, and a second line: which instruction sets the kernels use on this processor, best
// first.
std::string VersionText();

}  // namespace shoal::cli
