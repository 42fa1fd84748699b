// Schedules on Metronome, Marathon's companion for cron jobs: each scheduled Shoal job is a
// Metronome job whose runs execute `shoal run --engine marathon FILE` (ADR 107).
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/schedules.h"

namespace shoal::engine {

// Plain value; `clock` outlives the result of MakeMetronome.
struct MetronomeOptions {
  std::string program;       // path of shoal on all agents, unless the job file names another
  std::string settings_url;  // marathon.url of the job file; empty: SHOAL_MARATHON_URL
  std::string authorities;   // PEM file; empty: the machine's
  const Clock* clock = RealClock::Get();
  std::chrono::milliseconds poll{200};  // interval between polls of runs that must end
};

// Contacts Metronome only when a method needs it: at SHOAL_METRONOME_URL, else at an address
// derived from Marathon's, with Marathon's credentials.
std::unique_ptr<Schedules> MakeMetronome(MetronomeOptions options);

}  // namespace shoal::engine
