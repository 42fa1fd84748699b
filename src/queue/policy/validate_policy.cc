#include "queue/policy/validate_policy.h"

#include <algorithm>
#include <vector>

#include "job/text/yaml_tree.h"

namespace shoal::queue {
namespace {

constexpr size_t kMostFlavors = 32;

class Validator {
 public:
  Validator(const Policy& policy, const PolicyPlaces& places, job::Errors* errors)
      : policy_(policy), places_(places), errors_(errors) {
    for (const Flavor& flavor : policy.flavors) flavors_.push_back(flavor.name);
    for (const QueueSpec& queue : policy.queues) queues_.push_back(queue.name);
  }

  void Run();

 private:
  void Add(const std::string& path, const std::string& sentence) {
    const auto found = places_.find(path);
    errors_->Add(found == places_.end() ? job::SourceLocation{1, 1, -1} : found->second, path,
                 sentence);
  }
  bool Has(const std::string& path) const { return places_.contains(path); }
  const QueueSpec* Find(const std::string& name) const;
  void CheckParent(const QueueSpec& queue);
  void CheckFlavors(const std::vector<std::string>& flavors, const std::string& path);
  void CheckQuota(const QueueSpec& queue);
  void CheckDefault();
  void CheckWindows();
  std::vector<std::string> Leaves() const;

  const Policy& policy_;
  const PolicyPlaces& places_;
  job::Errors* const errors_;
  std::vector<std::string> flavors_;
  std::vector<std::string> queues_;
};

std::string List(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 8; ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > 8 ? text + " …" : text;
}

const QueueSpec* Validator::Find(const std::string& name) const {
  for (const QueueSpec& queue : policy_.queues) {
    if (queue.name == name) return &queue;
  }
  return nullptr;
}

// Each queue of a cycle is named once, at the first of them in the file.
void Validator::CheckParent(const QueueSpec& queue) {
  const std::string path = "queues." + queue.name + ".parent";
  if (queue.parent.empty()) return;
  if (Find(queue.parent) == nullptr) {
    return Add(path, "got " + job::PrintableText(queue.parent) + ", expected a queue of this file" +
                         job::DidYouMean(queue.parent, queues_));
  }
  std::string cycle = queue.name;
  std::vector<std::string> members = {queue.name};
  for (const QueueSpec* above = Find(queue.parent); above != nullptr; above = Find(above->parent)) {
    cycle += " → " + above->name;
    if (above->name == queue.name) {
      const bool first = std::all_of(queues_.begin(), queues_.end(), [&](const std::string& name) {
        const bool member = std::find(members.begin(), members.end(), name) != members.end();
        const auto at = [&](const std::string& of) {
          return std::find(queues_.begin(), queues_.end(), of) - queues_.begin();
        };
        return !member || at(queue.name) <= at(name);
      });
      if (first) Add(path, "got the cycle " + cycle + ", expected a tree; remove one `parent`");
      return;
    }
    if (std::find(members.begin(), members.end(), above->name) != members.end()) return;
    members.push_back(above->name);
  }
}

void Validator::CheckFlavors(const std::vector<std::string>& flavors, const std::string& path) {
  for (size_t i = 0; i < flavors.size(); ++i) {
    const std::string& name = flavors[i];
    if (std::find(flavors_.begin(), flavors_.end(), name) == flavors_.end()) {
      Add(path, "got " + job::PrintableText(name) + ", expected one of the file's flavors: " +
                    List(flavors_) + job::DidYouMean(name, flavors_));
    } else if (std::find(flavors.begin(), flavors.begin() + static_cast<int64_t>(i), name) !=
               flavors.begin() + static_cast<int64_t>(i)) {
      Add(path, "got " + job::PrintableText(name) + " twice, expected each flavor once");
    }
  }
}

void Validator::CheckQuota(const QueueSpec& queue) {
  for (const auto& [flavor, quota] : queue.quota) {
    const std::string path = "queues." + queue.name + ".quota." + flavor;
    CheckFlavors({flavor}, path);
    const std::vector<std::string>& used = queue.flavors;
    if (!used.empty() && std::find(used.begin(), used.end(), flavor) == used.end())
      Add(path, "got a quota of the flavor " + job::PrintableText(flavor) +
                    ", which is not in the queue's `flavors`: " + List(used));
    for (size_t r = 0; r < kResources; ++r) {
      const Quota& one = quota[r];
      const std::string resource = path + "." + kResourceNames[r];
      if (one.lend && *one.lend > one.nominal.value_or(0) &&
          (one.nominal.value_or(0) > 0 || *one.lend > 0)) {
        bool parent = false;  // what queues below it lend is lent further by a parent
        for (const QueueSpec& other : policy_.queues) parent |= other.parent == queue.name;
        if (!parent)
          Add(resource + ".lend", "got more than the nominal quota, expected at most that");
      }
      if (one.nominal == 0 && one.borrow == 0)
        Add(resource,
            "got nominal 0 and borrow 0, so that no job of the queue could ever start; "
            "leave the flavor out, or use `mode: hold`");
      if (one.borrow && queue.parent.empty())
        Add(resource + ".borrow",
            "got a limit of borrowing in a queue without a parent, which has nobody to borrow "
            "from");
    }
  }
}

std::vector<std::string> Validator::Leaves() const {
  std::vector<std::string> leaves;
  for (const QueueSpec& queue : policy_.queues) {
    const bool parent =
        std::any_of(policy_.queues.begin(), policy_.queues.end(),
                    [&](const QueueSpec& other) { return other.parent == queue.name; });
    if (!parent) leaves.push_back(queue.name);
  }
  return leaves;
}

void Validator::CheckDefault() {
  const std::vector<std::string> leaves = Leaves();
  const std::string& name = policy_.default_queue;
  if (leaves.empty()) return;  // there is a cycle
  if (std::find(leaves.begin(), leaves.end(), name) != leaves.end()) return;
  if (!Has("default_queue")) {
    Add("default_queue",
        "there is no queue 'default' for jobs that name none, expected the name "
        "of one of: " +
            List(leaves));
  } else if (Find(name) != nullptr) {
    Add("default_queue",
        "got " + job::PrintableText(name) +
            ", which has queues below it, expected one that takes jobs: " + List(leaves));
  } else {
    Add("default_queue", "got " + job::PrintableText(name) + ", expected one of: " + List(leaves) +
                             job::DidYouMean(name, leaves));
  }
}

void Validator::CheckWindows() {
  for (const MaintenanceWindow& window : policy_.windows) {
    const std::string path = "maintenance." + window.name;
    for (const char* const field : {"from", "until"}) {
      if (!Has(path + "." + field)) Add(path, std::string("got no `") + field + "`, expected both");
    }
    CheckFlavors(window.flavors, path + ".flavors");
    if (Has(path + ".from") && Has(path + ".until") && window.until <= window.from)
      Add(path + ".until", "got an end that is not after the beginning");
  }
}

void Validator::Run() {
  if (policy_.flavors.empty())
    Add("flavors", "got none, expected at least one kind of machines, such as {local: {}}");
  if (policy_.flavors.size() > kMostFlavors)
    Add("flavors", "got " + std::to_string(policy_.flavors.size()) + ", expected at most " +
                       std::to_string(kMostFlavors));
  if (policy_.queues.empty()) {
    Add("queues", "got none, expected at least one queue, such as {default: {}}");
    return;
  }
  for (const QueueSpec& queue : policy_.queues) {
    CheckParent(queue);
    CheckFlavors(queue.flavors, "queues." + queue.name + ".flavors");
    CheckQuota(queue);
  }
  CheckDefault();
  CheckWindows();
  if (policy_.requeue_most < policy_.requeue_first)
    Add("requeue.most", "got less than requeue.first, expected at least that");
}

}  // namespace

void ValidatePolicy(const Policy& policy, const PolicyPlaces& places, job::Errors* errors) {
  Validator(policy, places, errors).Run();
}

}  // namespace shoal::queue
