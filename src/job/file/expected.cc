// Descriptions of the values that a field accepts, for messages; and the reserved variable names.
#include <algorithm>
#include <cstdio>

#include "job/file/fields.h"

namespace shoal::job {
namespace {

constexpr double kSecond = 1000;  // durations are in milliseconds
constexpr double kHour = 3600 * kSecond;

std::string Number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.15g", value);
  return buffer;
}

// The largest of `units` (name, factor; ascending) that divides the value.
template <size_t n>
std::string WithUnit(double value, const std::pair<const char*, double> (&units)[n]) {
  std::string text = Number(value);
  for (const auto& [unit, factor] : units) {
    const double count = value / factor;
    if (value > 0 && count == static_cast<double>(static_cast<int64_t>(count))) {
      text = Number(count) + unit;
    }
  }
  return text;
}

std::string SizeText(double bytes) {
  return WithUnit(
      bytes, {{"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0}});
}

std::string DurationText(double ms) {
  return WithUnit(
      ms, {{"ms", 1.0}, {"s", kSecond}, {"m", 60 * kSecond}, {"h", kHour}, {"d", 24 * kHour}});
}

std::string OneOf(std::string_view choices) {
  std::string text = "one of ";
  for (const char c : choices) text += c == '|' ? std::string(", ") : std::string(1, c);
  return text;
}

}  // namespace

std::string Expected(const Field& field) {
  switch (field.type) {
    case Type::kText:
      return "a text of at most " + Number(field.most) + " bytes";
    case Type::kName:
      return "a name of letters, digits, '-', '_' and '.', at most 63";
    case Type::kInteger:
      return "an integer from " + Number(field.least) + " to " + Number(field.most);
    case Type::kNumber:
      return "a number from " + Number(field.least) + " to " + Number(field.most);
    case Type::kSize:
      return "a size from " + SizeText(field.least) + " to " + SizeText(field.most) +
             ", such as 512Mi or 2Gi";
    case Type::kDuration:
      return "a time from " + DurationText(field.least) + " to " + DurationText(field.most) +
             ", such as 100ms, 60s, 5m or 4h";
    case Type::kChoice:
      return OneOf(field.choices);
    case Type::kTexts:
      return "a text or a list of texts";
    case Type::kCommand:
      return "a list of words, such as [python, train.py]";
    case Type::kTextMap:
      return "named texts, such as {model: vectors}";
    case Type::kVariables:
      return "named texts, such as {OMP_NUM_THREADS: \"1\"}";
    case Type::kLearn:
      return "named texts and numbers, such as {algorithm: word2vec, dim: 100}";
    case Type::kRole:
      return "the name of a role";
    case Type::kRoles:
      return "the name of a role or a list of such";
    case Type::kExitRules:
      return "a list of rules, such as [{code: 137, action: retry}]";
    case Type::kLogRules:
      return "a list of rules, such as [{line: \"*NCCL error*\", action: retry}]";
    case Type::kPorts:
      return "a list of port names, such as [grpc]";
    case Type::kPodValue:
      return "a value of the Kubernetes type " + std::string(field.choices);
    case Type::kDependencies:
      return "a job or a list of jobs, such as [prepare, {job: check, when: ended}]";
    case Type::kMatrix:
      return "lists of values by parameter, such as {lr: [0.1, 0.01], dim: [100, 300]}";
    case Type::kSweepParameters:
      return "ranges and lists of values by parameter, such as {lr: {log_uniform: [1e-4, 0.1]}, "
             "dim: "
             "[100, 300]}";
    case Type::kSection:
      return "fields";
    case Type::kSections:
      return "named sections of fields";
  }
  return "a value";
}

bool IsReservedVariable(std::string_view name) {
  constexpr std::string_view kReserved[] = {
      "SHOAL_JOB_ID",     "SHOAL_JOB_NAME",   "SHOAL_ROLE",         "SHOAL_INDEX",
      "SHOAL_REPLICAS",   "SHOAL_ATTEMPT",    "SHOAL_GENERATION",   "SHOAL_CLUSTER",
      "SHOAL_PORT",       "SHOAL_TOKEN_FILE", "SHOAL_CLUSTER_FILE", "SHOAL_SCRATCH",
      "SHOAL_JOB_DIR",    "SHOAL_OUTPUT",     "SHOAL_REPORT_FD",    "SHOAL_LEARN",
      "SHOAL_DATA",       "SHOAL_PROGRAM",    "SHOAL_OUTPUTS",      "SHOAL_CHECKPOINT",
      "SHOAL_LOCAL_RANK", "SHOAL_LOCAL_SIZE", "SHOAL_CPUS",         "SHOAL_INITIAL_REPLICAS",
  };
  return name.starts_with("SHOAL_PORT_") ||
         std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

}  // namespace shoal::job
