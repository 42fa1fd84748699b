#include "import/conversion/job_builder.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "import/conversion/common_settings.h"
#include "job/file/fields.h"
#include "job/spec/framework.h"

namespace shoal::importer {
namespace {

constexpr size_t kMaxRoles = 256;

constexpr size_t kMaxPorts = 16;

void AddPort(const job::Port& port, job::Role* role) {
  for (const job::Port& one : role->ports) {
    if (one.name == port.name) return;
  }
  if (role->ports.size() < kMaxPorts) role->ports.push_back(port);
}

// Exit codes 126 and 127 mean that a program cannot be started or does not exist. A restart does
// not help, whatever the foreign restart policy says.
void EndWithoutProgram(job::Role* role) {
  constexpr size_t kMostRules = 64;
  if (role->restart.when != job::RestartWhen::kAlways || role->on_exit.size() >= kMostRules) return;
  role->on_exit.push_back({"126-127", job::EndAction::kFail});
}

}  // namespace

bool IsVariableName(const std::string& name) {
  return !name.empty() && name.size() <= 256 &&
         std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

std::string ToRoleName(const std::string& name, size_t most) {
  std::string plain;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool good = byte < 0x80 && std::isalnum(byte) != 0;
    if (plain.empty() && !(good && std::isalpha(byte) != 0)) continue;
    if (plain.size() >= most) break;
    if (good) {
      plain += static_cast<char>(std::tolower(byte));
    } else if (plain.back() != '-') {
      plain += '-';
    }
  }
  while (!plain.empty() && plain.back() == '-') plain.pop_back();
  return plain;
}

std::string ToVariableName(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool good = byte < 0x80 && std::isalnum(byte) != 0;
    out += good ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return out;
}

void PrependStatement(const std::string& statement, job::Role* role) {
  std::vector<std::string>& command = role->command;
  if (command.empty()) return;
  if (command.size() == 3 && command[0] == "sh" && command[1] == "-c") {
    command[2] = statement + "\n" + command[2];
    return;
  }
  command.insert(command.begin(), {"sh", "-c", statement + "\nexec \"$@\"", "sh"});
}

std::string NameOfPrefix(std::string prefix) {
  prefix.resize(prefix.find_last_not_of("-._") + 1);
  return prefix;
}

JobBuilder::JobBuilder(std::string file, Diagnostics* diagnostics) : diagnostics_(diagnostics) {
  draft_.job.file = std::move(file);
  draft_.places.at["roles"] = {};
}

job::Role* JobBuilder::FindRole(const std::string& name) {
  for (job::Role& role : draft_.job.roles) {
    if (role.name == name) return &role;
  }
  return nullptr;
}

job::Role* JobBuilder::AddRole(const std::string& name, const job::SourceLocation& place,
                               const std::string& field) {
  if (draft_.job.roles.size() >= kMaxRoles) {
    diagnostics_->AddError(place, field,
                           "got more than " + std::to_string(kMaxRoles) + " roles, expected fewer");
    overflow_role_ = {};
    overflow_role_.name = "beyond";
    return &overflow_role_;
  }
  std::string plain = ToRoleName(name, job::kMaxPlainName - 4);
  if (plain.empty()) plain = "task";
  if (plain == "coordinator") plain = "coordinator-task";
  std::string free = plain;
  for (int n = 2; FindRole(free) != nullptr; ++n) free = plain + "-" + std::to_string(n);
  if (free != name) {
    diagnostics_->AddMinorLoss(
        place, field,
        "got the name " + job::PrintableText(name) + "; not kept: a role is called " + free +
            " here, as names of roles are lower-case letters, digits and '-', each once",
        "roles." + free);
  }
  draft_.job.roles.emplace_back().name = free;
  MarkDecided("roles." + free);
  return &draft_.job.roles.back();
}

int JobBuilder::TotalReplicas() const {
  int sum = 0;
  for (const job::Role& role : draft_.job.roles) sum += role.replicas;
  return sum;
}

void JobBuilder::SetName(const std::string& name) {
  std::string good;
  for (const char c : name.substr(0, 63)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool alnum = byte < 0x80 && std::isalnum(byte) != 0;
    if (alnum || (!good.empty() && std::string_view("-_.").find(c) != std::string_view::npos)) {
      good += c;
    } else if (!good.empty()) {
      good += '-';
    }
  }
  draft_.job.name = good;
}

void JobBuilder::SetFollows(job::Role* role, const std::string& leader) {
  role->follows = leader;
  MarkDecided("roles." + role->name + ".follows");
}

void JobBuilder::SetScope(job::Role* role, job::RestartScope scope) {
  role->restart.scope = scope;
  MarkDecided("roles." + role->name + ".restart.scope");
}

void JobBuilder::SetSuccess(job::SuccessRule rule, std::vector<std::string> roles, int count) {
  draft_.job.success = {rule, std::move(roles), count};
  MarkDecided("success");
}

void JobBuilder::SetImage(const std::string& image, const job::Role& role, FieldReader* from) {
  job::Job& job = draft_.job;
  images_[role.name] = image;
  if (job.image.empty()) {
    job.image = image;
    image_place_ = from->PlaceOf("image");
    image_field_ = from->PathOf("image");
  } else if (job.image != image) {
    from->AddLoss("image",
                  "got the image " + job::PrintableText(image) + " beside " +
                      job::PrintableText(job.image) +
                      "; not kept: a job has one image; build one that has both, or run the "
                      "roles as jobs of their own");
  }
}

void JobBuilder::SetEntryPoint(job::Role* role, std::vector<std::string> arguments,
                               FieldReader* from, const std::string& field) {
  const std::string give =
      "give the program with --set 'roles." + role->name + ".command=[python, train.py]'";
  from->set_at("roles." + role->name);
  if (draft_.job.image.empty()) {
    return from->AddLoss(field,
                         "the container has no command and no image, so that nothing is known "
                         "that it could start; " +
                             give);
  }
  role->args = std::move(arguments);
  entry_points_[role->name] = {
      from->PlaceOf(field), from->PathOf(field), give, from->at(), false, ""};
  from->AddLossExceptOn(
      "docker", field,
      "the container has no command: its image's own entry point runs, which the engine "
      "docker asks the daemon for; for other engines " +
          give);
}

void JobBuilder::SetWorkDir(const job::Role& role, const std::string& dir, FieldReader* from) {
  work_dirs_[role.name] = {dir, from->PlaceOf("workingDir"), from->PathOf("workingDir")};
}

void JobBuilder::SetCommonWorkDir() {
  if (work_dirs_.empty()) return;
  const std::string& first = work_dirs_.begin()->second.dir;
  // Only roles without a command run an entry point.
  const bool same = std::ranges::all_of(draft_.job.roles, [&](const job::Role& role) {
    const auto found = work_dirs_.find(role.name);
    return role.command.empty() || (found != work_dirs_.end() && found->second.dir == first);
  });
  if (same && first.starts_with('/')) {
    draft_.job.container.work_dir = first;
    return;
  }
  for (const auto& [role, one] : work_dirs_) {
    diagnostics_->AddLoss(
        one.place, one.field,
        "the program started in " + job::PrintableText(one.dir) +
            "; not kept: a job has one container.work_dir, an absolute one, for all "
            "roles; begin the command with sh, -c, 'cd DIR && exec …'",
        "roles." + role + ".command");
  }
}

void JobBuilder::SetVariable(job::Role* role, const std::string& name, const std::string& value,
                             FieldReader* from) {
  const std::string at = "roles." + role->name + ".env";
  if (!IsVariableName(name)) {
    diagnostics_->AddLoss(from->place(), from->path(),
                          "got the variable " + job::PrintableText(name) +
                              "; not kept: names of variables are letters, digits and '_' here",
                          at);
  } else if (job::IsReservedVariable(name) || job::IsSetByFramework(draft_.job.framework, name)) {
    Refused& refused = refused_[role->name];
    if (refused.names.empty()) refused = {from->place(), from->path(), ""};
    refused.names += (refused.names.empty() ? "" : ", ") + name;
  } else {
    role->env[name] = value;
  }
}

// True if the job's image is not the one whose entry point the role needs.
void JobBuilder::FindRolesWithoutCommand() {
  for (auto& [role, loss] : entry_points_) {
    const auto own = images_.find(role);
    if (own != images_.end() && own->second == draft_.job.image) continue;
    loss.sentence = "the container has no command: the entry point of " +
                    (own == images_.end() ? "an image that is not named"
                                          : "its image " + job::PrintableText(own->second)) +
                    " ran, and the job's image is " + job::PrintableText(draft_.job.image) +
                    ", as a job has one; " + loss.sentence;
    commandless_.insert({role, loss});
  }
}

job::Job JobBuilder::Build() {
  job::Job& job = draft_.job;
  FindRolesWithoutCommand();
  HoistCommonSettings(&job);
  SetCommonWorkDir();
  if (!job.image.empty()) {
    diagnostics_->AddLoss(
        image_place_, image_field_,
        "the program ran in the image " + job::PrintableText(job.image) +
            "; the local engine runs the commands on this machine without it, so what "
            "they need must be installed here",
        "image");
  }
  std::vector<std::string> names;
  for (const job::Role& role : job.roles) names.push_back(role.name);
  for (const auto& [role, refused] : refused_) {
    diagnostics_->AddMinorLoss(
        refused.place, refused.field,
        "got " + refused.names +
            "; not kept: Shoal sets such variables from the tasks' real addresses",
        "roles." + role + ".env");
  }
  // The framework's own ports come first, then those of the file.
  std::vector<std::vector<job::Port>> further;
  for (job::Role& role : job.roles) further.push_back(std::exchange(role.ports, {}));
  for (job::Role& role : job.roles) EndWithoutProgram(&role);
  job::ApplyDefaults(&draft_);
  for (size_t i = 0; i < further.size(); ++i) {
    // Compare by name: ApplyDefaults may have added roles before or after these.
    job::Role* role = FindRole(names[i]);
    for (const job::Port& port : further[i]) AddPort(port, role);
  }
  return std::move(job);
}

}  // namespace shoal::importer
