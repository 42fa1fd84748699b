// When, and in which variants, a server starts a job: the fields `after`, `matrix` and `sweep` of a
// job file. Parts of Job in job.h. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shoal::job {

inline constexpr int kMaxMembers = 10'000;       // of a matrix or sweep
inline constexpr int kMaxDependencies = 1000;    // of a job
inline constexpr int kDefaultMemberLimit = 100;  // members that are unfinished at the same time

// Which end of another job a job waits for.
enum class DependencyWhen : uint8_t { kSucceeded, kFailed, kEnded };

struct Dependency {
  std::string job;  // its name in a file, its id once submitted
  DependencyWhen when = DependencyWhen::kSucceeded;

  bool operator==(const Dependency&) const = default;
};

// The values of one member by the names of the parameters, for {{matrix.NAME}}.
using MatrixValues = std::map<std::string, std::string>;

// One member for each combination of the parameters' values (matrix.h).
struct Matrix {
  std::vector<std::pair<std::string, std::vector<std::string>>> parameters;  // as in the file
  std::vector<MatrixValues> include;
  std::vector<MatrixValues> exclude;
  int limit = kDefaultMemberLimit;

  bool empty() const { return parameters.empty() && include.empty(); }
  bool operator==(const Matrix&) const = default;
};

enum class SweepGoal : uint8_t { kMinimize, kMaximize };
enum class SweepSearch : uint8_t { kRandom, kGrid };
enum class ParameterKind : uint8_t { kChoice, kUniform, kLogUniform, kInteger, kLogInteger };

// A parameter of a sweep. `least` and `most` are inclusive and not for kChoice.
struct SweepParameter {
  std::string name;
  ParameterKind kind = ParameterKind::kChoice;
  std::vector<std::string> choices;
  double least = 0;
  double most = 0;
  int steps = 0;  // values of a range in a grid; 0: not given

  bool operator==(const SweepParameter&) const = default;
};

// Which members end early: ASHA (asha.h). Rungs are at first · reduction^k.
struct SweepStop {
  std::string by;    // name of the reported number that counts; empty: the number of reports
  double first = 0;  // of the first rung; 0: no member is stopped
  int reduction = 3;

  bool operator==(const SweepStop&) const = default;
};

// Members with drawn values, compared by a number that they report. Empty `objective`: none.
struct Sweep {
  std::string objective;
  SweepGoal goal = SweepGoal::kMinimize;
  SweepSearch search = SweepSearch::kRandom;
  int trials = 0;  // 0: all of the grid
  int64_t seed = 0;
  int limit = 4;
  std::vector<SweepParameter> parameters;  // as in the file
  SweepStop stop;

  bool operator==(const Sweep&) const = default;
};

// Plain, copyable data.
struct Triggers {
  std::vector<Dependency> after;
  Matrix matrix;
  Sweep sweep;

  // True if the job stands for several ones.
  bool has_members() const { return !matrix.empty() || !sweep.objective.empty(); }
  bool operator==(const Triggers&) const = default;
};

}  // namespace shoal::job
