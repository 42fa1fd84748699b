// Shell lines that sleep forever behind their program, as services on Marathon often do.
#pragma once

#include <string>

namespace shoal::importer {

// Removes a trailing endless sleep, whose only purpose is that Marathon does not restart the app. A
// line with background programs is returned unchanged: they live as long as the sleep.
std::string StripTrailingSleep(const std::string& line);

}  // namespace shoal::importer
