// Names of the enumerators of a Job, as in job files and in its JSON. Only for .cc files of this
// room.
#pragma once

#include <csignal>

#include "job/spec/job.h"
#include "job/spec/name_table.h"

namespace shoal::job {

inline constexpr NameEntry<Framework> kFrameworks[] = {
    {Framework::kShoal, "shoal"},
    {Framework::kPsLite, "ps-lite"},
    {Framework::kTensorflow, "tensorflow"},
    {Framework::kPytorch, "pytorch"},
    {Framework::kMpi, "mpi"},
    {Framework::kHorovod, "horovod"},
    {Framework::kRabit, "rabit"},
    {Framework::kSpark, "spark"},
    {Framework::kJax, "jax"},
    {Framework::kPaddle, "paddle"},
    {Framework::kGeneric, "generic"},
};

inline constexpr NameEntry<RestartWhen> kRestartWhens[] = {
    {RestartWhen::kNever, "never"},
    {RestartWhen::kTransient, "transient"},
    {RestartWhen::kAlways, "always"},
};

inline constexpr NameEntry<RestartScope> kRestartScopes[] = {
    {RestartScope::kTask, "task"},
    {RestartScope::kRole, "role"},
    {RestartScope::kJob, "job"},
};

inline constexpr NameEntry<AfterWhen> kAfterWhens[] = {
    {AfterWhen::kReady, "ready"},
    {AfterWhen::kStarted, "started"},
    {AfterWhen::kEnded, "ended"},
};

inline constexpr NameEntry<ReadyBy> kReadyBys[] = {
    {ReadyBy::kStart, "start"},     {ReadyBy::kTcp, "tcp"}, {ReadyBy::kHttp, "http"},
    {ReadyBy::kCommand, "command"}, {ReadyBy::kLog, "log"},
};

inline constexpr NameEntry<Concurrency> kConcurrencies[] = {
    {Concurrency::kForbid, "forbid"},
    {Concurrency::kAllow, "allow"},
    {Concurrency::kReplace, "replace"},
};

inline constexpr NameEntry<MissedRuns> kMissedRuns[] = {
    {MissedRuns::kRunOnce, "run_once"},
    {MissedRuns::kSkip, "skip"},
};

inline constexpr NameEntry<DependencyWhen> kDependencyWhens[] = {
    {DependencyWhen::kSucceeded, "succeeded"},
    {DependencyWhen::kFailed, "failed"},
    {DependencyWhen::kEnded, "ended"},
};

inline constexpr NameEntry<SweepGoal> kSweepGoals[] = {
    {SweepGoal::kMinimize, "minimize"},
    {SweepGoal::kMaximize, "maximize"},
};

inline constexpr NameEntry<SweepSearch> kSweepSearches[] = {
    {SweepSearch::kRandom, "random"},
    {SweepSearch::kGrid, "grid"},
};

inline constexpr NameEntry<ParameterKind> kParameterKinds[] = {
    {ParameterKind::kChoice, "choice"},          {ParameterKind::kUniform, "uniform"},
    {ParameterKind::kLogUniform, "log_uniform"}, {ParameterKind::kInteger, "integer"},
    {ParameterKind::kLogInteger, "log_integer"},
};

inline constexpr NameEntry<EndAction> kEndActions[] = {
    {EndAction::kRetry, "retry"},
    {EndAction::kFail, "fail"},
    {EndAction::kIgnore, "ignore"},
    {EndAction::kRestartJob, "restart_job"},
    {EndAction::kExcludeHost, "exclude_host"},
};

inline constexpr NameEntry<OnStall> kOnStalls[] = {
    {OnStall::kReport, "report"},
    {OnStall::kRestart, "restart"},
    {OnStall::kFail, "fail"},
};

// Key: signal number; 0: none.
inline constexpr NameEntry<int> kCheckpointSignals[] = {
    {0, "none"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGHUP, "SIGHUP"}, {SIGINT, "SIGINT"},
};

inline constexpr NameEntry<SuccessRule> kSuccessRules[] = {
    {SuccessRule::kAll, "all"},
    {SuccessRule::kAny, "any"},
    {SuccessRule::kFirst, "first"},
    {SuccessRule::kCount, "count"},
};

inline constexpr NameEntry<OnControllerLoss> kControllerLosses[] = {
    {OnControllerLoss::kStop, "stop"},
    {OnControllerLoss::kKeep, "keep"},
};

}  // namespace shoal::job
