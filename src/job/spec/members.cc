#include "job/spec/members.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>

namespace shoal::job {
namespace {

using Parameters = std::vector<std::pair<std::string, std::vector<std::string>>>;

// The shortest text that reads back as the same number.
std::string NumberOf(double value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : "0";
}

Status TooMany(int64_t count) {
  return InvalidArgument("got " + std::to_string(count) + " members or more, expected at most " +
                         std::to_string(kMaxMembers));
}

// All combinations, the first parameter varying slowest.
Result<std::vector<MatrixValues>> ProductOf(const Parameters& parameters) {
  int64_t count = parameters.empty() ? 0 : 1;
  for (const auto& [name, values] : parameters) {
    count *= static_cast<int64_t>(values.size());
    if (count > kMaxMembers) return TooMany(count);
  }
  std::vector<MatrixValues> members(static_cast<size_t>(count));
  int64_t repeat = count;
  for (const auto& [name, values] : parameters) {
    const auto size = static_cast<int64_t>(values.size());
    if (size == 0) return std::vector<MatrixValues>();
    repeat /= size;
    for (int64_t i = 0; i < count; ++i)
      members[static_cast<size_t>(i)][name] = values[static_cast<size_t>(i / repeat % size)];
  }
  return members;
}

bool Contains(const MatrixValues& member, const MatrixValues& part) {
  return std::ranges::all_of(part, [&](const auto& one) {
    const auto found = member.find(one.first);
    return found != member.end() && found->second == one.second;
  });
}

// Adds the values of an `include` entry. `product`: the number of members that the parameters make.
void Include(const Matrix& matrix, const MatrixValues& entry, size_t product,
             std::vector<MatrixValues>* members) {
  MatrixValues own;  // values of parameters, which an entry may not change
  for (const auto& [name, values] : matrix.parameters) {
    if (const auto found = entry.find(name); found != entry.end()) own.insert(*found);
  }
  bool added = false;
  for (size_t i = 0; i < product; ++i) {
    if (!Contains((*members)[i], own)) continue;
    for (const auto& [name, value] : entry) (*members)[i][name] = value;
    added = true;
  }
  if (!added) members->push_back(entry);
}

Result<std::vector<MatrixValues>> MatrixMembers(const Matrix& matrix) {
  TRY_ASSIGN(std::vector<MatrixValues> members, ProductOf(matrix.parameters));
  // Each entry is compared with each combination.
  constexpr size_t kWork = 500'000;
  const size_t entries = matrix.include.size() + matrix.exclude.size();
  if (entries * members.size() > kWork)
    return InvalidArgument("got " + std::to_string(entries) +
                           " entries of include and exclude for " + std::to_string(members.size()) +
                           " combinations, expected fewer: at most 500000 comparisons");
  std::erase_if(members, [&](const MatrixValues& member) {
    return std::ranges::any_of(matrix.exclude,
                               [&](const MatrixValues& entry) { return Contains(member, entry); });
  });
  const size_t product = members.size();
  for (const MatrixValues& entry : matrix.include) Include(matrix, entry, product, &members);
  return members;
}

// ---- Sweeps -------------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea, Flood 2014): a well-mixed word of any counter.
uint64_t Mix(uint64_t word) {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

// Few digits, so that people can read them and every machine has the same ones.
double Rounded(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  double rounded = 0;
  std::from_chars(buffer, buffer + sizeof buffer, rounded);
  return rounded;
}

// In [0, 1).
double DrawUnit(int64_t seed, size_t member, size_t parameter) {
  const uint64_t word = Mix(Mix(Mix(static_cast<uint64_t>(seed)) ^ member) ^ parameter);
  return static_cast<double>(word >> 11) * 0x1.0p-53;
}

// The value at `unit` of the way through the parameter's range.
std::string ValueAt(const SweepParameter& parameter, double unit) {
  const double least = parameter.least;
  const double most = parameter.most;
  switch (parameter.kind) {
    case ParameterKind::kChoice: {
      const auto size = static_cast<double>(parameter.choices.size());
      return parameter.choices[static_cast<size_t>(std::min(unit * size, size - 1))];
    }
    case ParameterKind::kUniform:
      return NumberOf(std::clamp(Rounded(least + unit * (most - least)), least, most));
    case ParameterKind::kLogUniform:
      return NumberOf(std::clamp(Rounded(least * std::pow(most / least, unit)), least, most));
    case ParameterKind::kInteger:
      return NumberOf(std::min(std::floor(least + unit * (most - least + 1)), most));
    case ParameterKind::kLogInteger:
      return NumberOf(
          std::clamp(std::floor(least * std::pow((most + 1) / least, unit)), least, most));
  }
  return "";
}

// The values of a grid, without those that a range of whole numbers has twice.
std::vector<std::string> GridOf(const SweepParameter& parameter) {
  if (parameter.kind == ParameterKind::kChoice) return parameter.choices;
  const bool whole =
      parameter.kind == ParameterKind::kInteger || parameter.kind == ParameterKind::kLogInteger;
  const bool logarithmic =
      parameter.kind == ParameterKind::kLogUniform || parameter.kind == ParameterKind::kLogInteger;
  std::vector<std::string> values;
  for (int i = 0; i < parameter.steps; ++i) {
    const double unit = parameter.steps == 1 ? 0 : static_cast<double>(i) / (parameter.steps - 1);
    double value = logarithmic ? parameter.least * std::pow(parameter.most / parameter.least, unit)
                               : parameter.least + unit * (parameter.most - parameter.least);
    value = Rounded(value);
    if (i + 1 == parameter.steps && i > 0) value = parameter.most;
    std::string text = NumberOf(whole ? std::round(value) : value);
    if (values.empty() || values.back() != text) values.push_back(std::move(text));
  }
  return values;
}

MatrixValues DrawMember(const Sweep& sweep, size_t index) {
  MatrixValues member;
  for (size_t p = 0; p < sweep.parameters.size(); ++p)
    member[sweep.parameters[p].name] = ValueAt(sweep.parameters[p], DrawUnit(sweep.seed, index, p));
  return member;
}

Result<std::vector<MatrixValues>> SweepMembers(const Sweep& sweep) {
  if (sweep.search == SweepSearch::kGrid) {
    Parameters parameters;
    for (const SweepParameter& one : sweep.parameters)
      parameters.emplace_back(one.name, GridOf(one));
    TRY_ASSIGN(std::vector<MatrixValues> members, ProductOf(parameters));
    const auto trials = static_cast<size_t>(sweep.trials);
    if (trials > 0 && trials < members.size()) members.resize(trials);
    return members;
  }
  std::vector<MatrixValues> members(static_cast<size_t>(sweep.trials));
  for (size_t i = 0; i < members.size(); ++i) members[i] = DrawMember(sweep, i);
  return members;
}

}  // namespace

Result<std::vector<MatrixValues>> MembersOf(const Triggers& triggers) {
  const bool sweeps = !triggers.sweep.objective.empty();
  TRY_ASSIGN(std::vector<MatrixValues> members,
             sweeps ? SweepMembers(triggers.sweep) : MatrixMembers(triggers.matrix));
  if (members.size() > kMaxMembers) return TooMany(static_cast<int64_t>(members.size()));
  if (members.empty())
    return InvalidArgument("got values that make no member, expected at least one");
  return members;
}

Result<MatrixValues> MemberOf(const Triggers& triggers, size_t index) {
  const Sweep& sweep = triggers.sweep;
  const Status none = InvalidArgument("there is no member " + std::to_string(index));
  if (!sweep.objective.empty() && sweep.search == SweepSearch::kRandom)
    return index < static_cast<size_t>(sweep.trials) ? DrawMember(sweep, index)
                                                     : Result<MatrixValues>(none);
  TRY_ASSIGN(std::vector<MatrixValues> members, MembersOf(triggers));
  return index < members.size() ? std::move(members[index]) : Result<MatrixValues>(none);
}

std::vector<size_t> MembersToCheck(const std::vector<MatrixValues>& members) {
  // Each member is made from the whole text, whose length grows with the values.
  constexpr size_t kWork = 200'000;
  constexpr size_t kLeast = 16;
  const size_t most =
      std::clamp(kWork / std::max<size_t>(members.size(), 1), kLeast, kMaxCheckedMembers);
  std::set<std::pair<std::string, std::string>> seen;
  std::vector<size_t> indices;
  for (size_t i = 0; i < members.size() && indices.size() < most; ++i) {
    bool fresh = i == 0;
    for (const auto& value : members[i]) fresh |= seen.insert(value).second;
    if (fresh) indices.push_back(i);
  }
  return indices;
}

}  // namespace shoal::job
