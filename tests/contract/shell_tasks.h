// Tasks of the suite that are shell scripts on this machine, for the harnesses whose engine starts
// them here.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "contract/harness.h"

namespace shoal::engine {

DesiredTask ShellTask(Kind kind, const std::string& role, int index,
                      const std::filesystem::path& work_dir);
// Processes that carry the job's id.
int AliveHere(const std::string& job_id);
void LoseHere(const std::string& job_id, const std::string& role, int index);
// What a coordinator writes where it listens.
void WriteCoordinatorFile(const std::filesystem::path& job_dir, const Endpoint& endpoint);
bool AwaitHere(const std::function<bool()>& condition, std::chrono::seconds patience);

}  // namespace shoal::engine
