// Schedules of Metronome, which stands beside Marathon: for each scheduled job of ours one job of
// its own, which runs `shoal run --engine marathon FILE` each time (ADR 107).
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/schedules.h"

namespace shoal::engine {

struct MetronomeOptions {
  std::string program;       // shoal, where a job file names no other: as all agents find it
  std::string settings_url;  // of Marathon, from the job file; empty: SHOAL_MARATHON_URL
  std::string authorities;   // PEM file; empty: the machine's
  const Clock* clock = RealClock::Get();
  std::chrono::milliseconds poll{200};  // between two looks at runs that are to end
};

// Asks nobody yet. Metronome is at SHOAL_METRONOME_URL, else beside Marathon, and asked with
// Marathon's credentials.
std::unique_ptr<Schedules> MakeMetronome(MetronomeOptions options);

}  // namespace shoal::engine
