// Every field of every foreign schema (fields/), put into a small manifest of each kind with a
// value of its type: the job differs by it, or a comment names it, or the import is refused, as the
// table says. Nothing of a foreign file is lost in silence.
#include "import/conversion/foreign_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "import/import.h"

namespace shoal::importer {
namespace {

// Whether the sentence has the name as a word.
bool Says(const std::string& sentence, const std::string& name) {
  const auto letter = [&](size_t at) {
    return at < sentence.size() && std::isalnum(static_cast<unsigned char>(sentence[at])) != 0;
  };
  for (size_t at = sentence.find(name); at != std::string::npos; at = sentence.find(name, at + 1)) {
    if ((at == 0 || !letter(at - 1)) && !letter(at + name.size())) return true;
  }
  return false;
}

// One part of a path: a field, or an element of a list.
struct Step {
  std::string name;
  int index = -1;
};
using Path = std::vector<Step>;

struct Kind {
  std::string name;
  std::string root;                // its definition
  std::string manifest;            // JSON, one that is imported
  std::set<std::string> others{};  // fields that stand in place of those that it has
  std::string beside{};            // another document of the file
};

constexpr std::string_view kPod =
    R"({"metadata":{},"spec":{"containers":[{"name":"main","command":["a"],
        "volumeMounts":[{"name":"host","mountPath":"/mnt"},{"name":"value","mountPath":"/more"}]},
        {"name":"beside","command":["b"]}],
        "volumes":[{"name":"value"},{"name":"host","hostPath":{"path":"/data"}}]}})";

std::string Pod(std::string_view name) {
  std::string text(kPod);
  text.replace(text.find("main"), 4, name);
  return text;
}

std::string OtherPod(const std::string& name) {
  return R"({"spec":{"containers":[{"name":")" + name + R"(","command":["a"]}]}})";
}

std::string Replicas(const std::string& container, const std::vector<std::string>& roles) {
  std::string text;
  for (const std::string& role : roles) {
    const bool first = text.empty();
    text += (first ? "{\"" : ",\"") + role + R"(":{"replicas":)" + (role == "Worker" ? "2" : "1") +
            (first ? "" : R"(,"restartPolicy":"OnFailure")") + R"(,"template":)" +
            (first ? Pod(container) : OtherPod(container)) + "}";
  }
  return text + "}";
}

std::string Document(const std::string& version, const std::string& kind, const std::string& spec) {
  return R"({"apiVersion":")" + version + R"(","kind":")" + kind +
         R"(","metadata":{"name":"x"},"spec":)" + spec + "}";
}

std::string MetronomeJob(const std::string& container) {
  return R"({"id":"x","run":{"cmd":"a","cpus":1,"mem":128,"disk":0,
      "volumes":[{"containerPath":"/inside","hostPath":"/host"}],
      "secrets":{"known":{"source":"kept"}},"env":{"TOKEN":{"secret":"known"}},)" +
         container + "}}";
}

std::vector<Kind> KubeflowKinds() {
  const std::string v1 = "kubeflow.org/v1";
  const auto spec = [](const std::string& field, const std::string& replicas,
                       const std::string& more = "") {
    return "{" + more + "\"" + field + "\":" + replicas + "}";
  };
  const std::string mpi = Replicas("mpi", {"Launcher", "Worker"});
  return {
      {"TFJob", "TFJob",
       Document(v1, "TFJob", spec("tfReplicaSpecs", Replicas("tensorflow", {"Worker", "PS"})))},
      {"PyTorchJob", "PyTorchJob",
       Document(v1, "PyTorchJob",
                spec("pytorchReplicaSpecs", Replicas("pytorch", {"Worker", "Master"})))},
      {"XGBoostJob", "XGBoostJob",
       Document(v1, "XGBoostJob",
                spec("xgbReplicaSpecs", Replicas("xgboost", {"Worker", "Master"})))},
      {"MXJob", "MXJob",
       Document(v1, "MXJob",
                spec("mxReplicaSpecs", Replicas("mxnet", {"Worker", "Server", "Scheduler"}),
                     R"("jobMode":"MXTrain",)"))},
      {"JAXJob", "JAXJob",
       Document(v1, "JAXJob", spec("jaxReplicaSpecs", Replicas("jax", {"Worker"})))},
      {"PaddleJob", "PaddleJob",
       Document(v1, "PaddleJob",
                spec("paddleReplicaSpecs", Replicas("paddle", {"Worker", "Master"})))},
      {"MPIJob", "MPIJob", Document(v1, "MPIJob", spec("mpiReplicaSpecs", mpi))},
      {"MPIJobV2beta1", "V2beta1MPIJob",
       Document("kubeflow.org/v2beta1", "MPIJob", spec("mpiReplicaSpecs", mpi))},
  };
}

std::vector<Kind> ClusterKinds() {
  const std::string tasks = R"([{"name":"second","replicas":2,"template":)" + Pod("c") +
                            R"(},{"name":"first","replicas":2,"template":)" + OtherPod("c") +
                            R"(},{"name":"third","template":)" + OtherPod("c") + "}]";
  // Pods that the kubelet does not restart, so that policies for failed pods count.
  std::string final_pods = tasks;
  const std::string begin = R"("spec":{"containers")";
  for (size_t at = final_pods.find(begin); at != std::string::npos;
       at = final_pods.find(begin, at + begin.size() + 24)) {
    final_pods.insert(at + 8, R"("restartPolicy":"Never",)");
  }
  const std::string volcano =
      R"({"policies":[{"event":"PodEvicted","action":"RestartTask"},
          {"event":"PodFailed","action":"RestartJob"}],
          "volumes":[{"mountPath":"/claims","volumeClaimName":"c"}],"tasks":)" +
      final_pods + "}";
  return {
      {"VolcanoJob", "VolcanoJob", Document("batch.volcano.sh/v1alpha1", "Job", volcano)},
      {"Job", "Job",
       Document("batch/v1", "Job",
                R"({"completions":2,"parallelism":2,"template":)" + Pod("c") + "}")},
      {"VolcanoCronJob", "VolcanoCronJob",
       Document("batch.volcano.sh/v1alpha1", "CronJob",
                R"({"schedule":"0 3 * * *","jobTemplate":{"spec":)" + volcano + "}}")},
      {"JobSet", "JobSet",
       Document("jobset.x-k8s.io/v1alpha2", "JobSet",
                R"({"replicatedJobs":[{"name":"first","template":{"spec":{"backoffLimit":0,
                    "completionMode":"NonIndexed","completions":2,"parallelism":2,"template":)" +
                    Pod("c") + R"(}}},{"name":"second","template":{"spec":{"template":)" +
                    OtherPod("c") + R"(}}}]})")},
      {"CronJob", "CronJob",
       Document("batch/v1", "CronJob",
                R"({"schedule":"0 3 * * *","jobTemplate":{"spec":{"completions":2,"parallelism":2,
                    "template":)" +
                    Pod("c") + "}}}")},
  };
}

std::vector<Kind> TrainerKinds() {
  const auto step = [](const std::string& name, const std::string& label, const std::string& spec) {
    return R"({"name":")" + name +
           R"(","template":{"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":")" +
           label + R"("}},"spec":)" + spec + "}}";
  };
  const std::string first =
      R"({"backoffLimit":0,"completionMode":"NonIndexed","template":)" + Pod("node") + "}";
  const auto other = [](const std::string& container) {
    return R"({"template":)" + OtherPod(container) + "}";
  };
  const std::string runtime =
      R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainingRuntime",
          "metadata":{"name":"r"},"spec":{"mlPolicy":{"torch":{},"numNodes":3},
          "template":{"spec":{"replicatedJobs":[)" +
      step("first", "trainer", first) + "," +
      step("second", "dataset-initializer", other("dataset-initializer")) + "," +
      step("third", "model-initializer", other("model-initializer")) + "]}}}}";
  const auto job = [](const std::string& more) {
    return Document("trainer.kubeflow.org/v1alpha1", "TrainJob",
                    R"({"runtimeRef":{"kind":"TrainingRuntime","name":"r"})" + more + "}");
  };
  const std::string override =
      R"(,"podTemplateOverrides":[{"targetJobs":[{"name":"first"}],
          "spec":{"tolerations":[{"key":"k"}]}}])";
  return {{"TrainJob", "TrainJob", job(override), {}, runtime},
          {"TrainingRuntime", "TrainingRuntime", runtime, {}, job("")}};
}

std::vector<Kind> RayKinds() {
  return {
      {"RayJob", "RayJob",
       Document("ray.io/v1", "RayJob",
                R"({"entrypoint":"python a.py","rayClusterSpec":{"headGroupSpec":{"template":)" +
                    Pod("head") +
                    R"(},"workerGroupSpecs":[{"groupName":"w","replicas":2,"minReplicas":1,
                            "maxReplicas":1000,"template":)" +
                    Pod("worker") + "}]}}")}};
}

std::vector<Kind> SparkKinds() {
  return {{"SparkApplication", "SparkApplication",
           Document("sparkoperator.k8s.io/v1beta2", "SparkApplication",
                    R"({"type":"Scala","sparkVersion":"4","mainApplicationFile":"local:///a.jar",
                        "restartPolicy":{"type":"OnFailure"},"driver":{"volumeMounts":[{"name":"host","mountPath":"/mnt"},
                        {"name":"value","mountPath":"/more"}]},"executor":{"instances":2,"volumeMounts":[{"name":"host","mountPath":"/mnt"},
                        {"name":"value","mountPath":"/more"}]},
                        "volumes":[{"name":"value"},{"name":"host","hostPath":{"path":"/data"}}]})")}};
}

std::vector<Kind> MesosKinds() {
  return {
      {"MarathonGroup",
       "MarathonGroupUpdate",
       R"({"id":"/g","apps":[{"id":"a","cmd":"a","instances":2,
           "portDefinitions":[{"port":8000},{"port":0}]},{"id":"other","cmd":"b"}]})",
       {"args"}},
      {"MarathonApp",
       "MarathonApp",
       R"({"id":"/a","args":["a"]})",
       {"cmd", "dependencies", "container", "healthChecks", "requirePorts"}},
      {"MarathonImage",
       "MarathonApp",
       R"({"id":"/a","cmd":"a","container":{"docker":{"image":"i"}},
           "secrets":{"known":{"source":"kept"}},"env":{"TOKEN":{"secret":"known"}}})",
       {"args", "dependencies", "healthChecks", "requirePorts"}},
      {"MetronomeJob", "MetronomeJob", MetronomeJob(R"("docker":{"image":"i"})"), {"ucr"}},
      {"MetronomeUcr", "MetronomeJob", MetronomeJob(R"("ucr":{"image":{"id":"i"}})"), {"docker"}},
  };
}

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds = KubeflowKinds();
  for (const std::vector<Kind>& more :
       {ClusterKinds(), TrainerKinds(), RayKinds(), SparkKinds(), MesosKinds()})
    kinds.insert(kinds.end(), more.begin(), more.end());
  return kinds;
}

// What a definition's own fields need beside them to mean something.
json::value Beside(std::string_view definition) {
  const std::map<std::string_view, std::string_view> texts = {
      {"Toleration", R"({"key":"k"})"},
      {"EnvVar", R"({"name":"NAME"})"},
      {"ContainerPort", R"({"containerPort":80})"},
      {"HostPathVolumeSource", R"({"path":"/data"})"},
      {"VolcanoPolicy", R"({"event":"PodEvicted","action":"RestartTask"})"},
      {"PodFailurePolicyRule",
       R"({"action":"Count","onExitCodes":{"operator":"In","values":[42]}})"},
      {"VolcanoDependsOn", R"({"name":["first","third"]})"},
      {"JobSetDependsOn", R"({"name":"second","status":"Ready"})"},
      {"MarathonContainer", R"({"docker":{"image":"i"}})"},
      {"MarathonAppVolume", R"({"containerPath":"/inside"})"},
      {"MarathonAppHealthCheck", R"({"protocol":"HTTP"})"},
      {"MetronomeJobRunVolumes", R"({"containerPath":"/inside","hostPath":"/host"})"},
  };
  const auto found = texts.find(definition);
  return json::parse(found == texts.end() ? "{}" : json::string_view(found->second));
}

bool Is(std::string_view type, char opening) { return !type.empty() && type[0] == opening; }
std::string_view Inside(std::string_view type) { return type.substr(1, type.size() - 2); }

json::value ValueOf(std::string_view type, std::string_view example, int variant);

// An object of the definition with its required fields.
json::value Least(std::string_view definition) {
  json::value object = Beside(definition);
  for (const ForeignField& field : FindFields(definition)) {
    if (field.required && !object.as_object().contains(field.name)) {
      object.as_object()[field.name] = ValueOf(field.type, field.example, 0);
    }
  }
  return object;
}

// `variant`: 0, or another value of the same type.
json::value ValueOf(std::string_view type, std::string_view example, int variant) {
  if (!example.empty() && variant == 0) {
    const bool json = example[0] == '{' || example[0] == '[' || type == "flag" || type == "int";
    return json ? json::parse(json::string_view(example)) : json::value(example);
  }
  if (type.find('|') != std::string_view::npos && !Is(type, '{'))
    type = type.substr(0, type.find('|'));
  if (Is(type, '[')) return json::array{ValueOf(Inside(type), "", variant)};
  if (Is(type, '{')) {
    const std::string_view inside = Inside(type);
    return json::object{{"value", ValueOf(inside.substr(0, inside.find('|')), "", variant)}};
  }
  if (type == "text" || type == "any") return variant == 0 ? "value" : "another";
  if (type == "int" || type == "port") return 7 + variant;
  if (type == "number") return 0.5 + variant;
  if (type == "flag") return true;
  if (type == "quantity") return variant == 0 ? "3" : "4";
  if (type == "time") return "2026-01-01T00:00:00Z";
  return Least(type);
}

std::string TextOf(const Path& path) {
  std::string text;
  for (const Step& step : path) {
    text += (text.empty() ? "" : ".") + step.name;
    if (step.index >= 0) text += "[" + std::to_string(step.index) + "]";
  }
  return text;
}

// The value at the path; what is missing on the way is made.
json::value* At(json::value* document, const Path& path) {
  json::value* at = document;
  for (const Step& step : path) {
    if (!at->is_object()) *at = json::object();
    at = &at->as_object()[step.name];
    if (step.index < 0) continue;
    if (!at->is_array()) *at = json::array();
    while (at->as_array().size() <= static_cast<size_t>(step.index))
      at->as_array().emplace_back(nullptr);
    at = &at->as_array()[static_cast<size_t>(step.index)];
  }
  return at;
}

struct Outcome {
  Status status;
  job::Job job;
  std::vector<ImportLoss> losses;
};

Outcome ImportDocument(const json::value& document, const std::string& beside) {
  const std::string more = beside.empty() ? "" : "\n---\n" + beside;
  auto imported = ImportText(json::serialize(document) + more, "f.json");
  if (!imported.ok()) return {imported.status(), {}, {}};
  if (!imported->has_value()) return {InvalidArgument("not a job of another system"), {}, {}};
  auto finished = FinishImport(std::move(**imported), {});
  if (!finished.ok()) return {finished.status(), {}, {}};
  finished->job.file.clear();
  return {Status(), std::move(finished->job), std::move(finished->losses)};
}

// A field in its place.
struct Place {
  Path path;
  std::vector<std::string> names;  // those that a comment may call it by
  ForeignField rule;               // the row that decides
  const ForeignField* field;
};

std::string NameOf(const ForeignField& field) {
  return std::string(field.definition) + "." + std::string(field.name);
}

class Walk {
 public:
  // `honoured`, `changing`: the fields that the table calls so, and those that changed a job.
  Walk(const Kind& kind, std::set<std::string>* honoured, std::set<std::string>* changing)
      : base_(json::parse(kind.manifest)),
        others_(kind.others),
        beside_(kind.beside),
        honoured_(honoured),
        changing_(changing) {
    base_outcome_ = ImportDocument(base_, beside_);
    if (!base_outcome_.status.ok()) {
      ADD_FAILURE() << base_outcome_.status.message();
      return;
    }
    Enter(kind.root, {}, {}, nullptr, base_);
  }
  int checked() const { return checked_; }

 private:
  // `holder`: the row that decides for all below, if one does. `document`: has the section.
  void Enter(std::string_view definition, const Path& path, const std::vector<std::string>& names,
             const ForeignField* holder, const json::value& document) {
    if (std::count(inside_.begin(), inside_.end(), definition) > 0) return;
    inside_.emplace_back(definition);
    for (const ForeignField& field : FindFields(definition)) {
      if (others_.contains(std::string(field.name)) && path.size() < 2) continue;
      // What is told as a whole is told with all that is in it.
      const bool decides = field.verdict != FieldSupport::kInherited &&
                           (holder == nullptr || holder->verdict == FieldSupport::kHonoured);
      ASSERT_TRUE(decides || holder != nullptr) << definition << "." << field.name;
      std::vector<std::string> called = decides && !names.empty() && holder == nullptr
                                            ? std::vector<std::string>{names.back()}
                                            : names;
      called.emplace_back(field.name);
      Path at = path;
      at.push_back({std::string(field.name), -1});
      Visit({at, called, decides ? field : *holder, &field}, document);
    }
    inside_.pop_back();
  }

  void Visit(const Place& place, const json::value& document) {
    std::string_view type = place.field->type;
    const size_t bar = type.find('|');
    if (bar != std::string_view::npos && !Is(type, '{')) {
      Place alternative = place;
      if (place.rule.verdict == FieldSupport::kNested)
        alternative.rule.verdict = FieldSupport::kWarned;
      CheckLeaf(alternative, document);
      type = type.substr(bar + 1);
    }
    Path path = place.path;
    while (Is(type, '[') || Is(type, '{')) {
      if (Is(type, '[')) path.back().index = 0;
      if (Is(type, '{')) path.push_back({KeyAt(document, path), -1});
      type = Inside(type);
      if (path.back().index >= 0 && Is(type, '[')) break;
    }
    const size_t inner = type.find('|');
    if (inner != std::string_view::npos) type = type.substr(0, inner);
    if (FindFields(type).empty()) return CheckLeaf(place, document);
    json::value with = document;
    json::value* section = At(&with, path);
    if (!section->is_object()) *section = Least(type);
    const ForeignField* holder =
        place.rule.verdict == FieldSupport::kNested ? nullptr : &place.rule;
    Enter(type, path, place.names, holder, with);
  }

  // The first name of a map of the user's.
  static std::string KeyAt(json::value document, const Path& path) {
    const json::value* at = At(&document, path);
    if (!at->is_object() || at->as_object().empty()) return "value";
    return at->as_object().begin()->key();
  }

  void CheckLeaf(const Place& place, const json::value& document) {
    const json::value one = ValueOf(place.field->type, place.field->example, 0);
    json::value with = document;
    json::value without = document;
    json::value* there = At(&with, place.path);
    const bool was = !there->is_null();
    const json::value before = *there;
    *there = before == one ? ValueOf(place.field->type, place.field->example, 1) : one;
    if (!was) {
      const Path parent(place.path.begin(), place.path.end() - 1);
      At(&without, parent)->as_object().erase(place.path.back().name);
    }
    const std::string text = json::serialize(without);
    if (text != without_text_) {
      without_text_ = text;
      without_ = ImportDocument(without, beside_);
    }
    const Outcome outcome = ImportDocument(with, beside_);
    Compare(place, outcome, without_);
    if (place.rule.verdict == FieldSupport::kHonoured && outcome.status.ok())
      CompareValues(place, with, outcome);
    ++checked_;
  }

  // Not only that the field is there counts, but what it says.
  void CompareValues(const Place& place, json::value document, const Outcome& outcome) {
    const std::string_view type = place.field->type;
    if (type != "text" && type != "int" && type != "number" && type != "quantity") return;
    json::value* there = At(&document, place.path);
    const json::value before = *there;
    *there = ValueOf(type, place.field->example, 1);
    if (*there == before) *there = ValueOf(type, place.field->example, 0);
    if (*there == before) return;
    const Outcome other = ImportDocument(document, beside_);
    if (place.field->verdict == FieldSupport::kHonoured)
      honoured_->insert(NameOf(*place.field) + "'s value");
    if (!other.status.ok() || !(other.job == outcome.job))
      changing_->insert(NameOf(*place.field) + "'s value");
  }

  // Whether the comment is of this field.
  static bool Names(const ImportLoss& loss, const Place& place) {
    const std::string path = TextOf(place.path);
    if (!loss.field.empty() && path.starts_with(loss.field)) return true;
    return std::any_of(place.names.begin(), place.names.end(), [&](const std::string& name) {
      return loss.field.ends_with("." + name) || loss.field == name || Says(loss.sentence, name);
    });
  }

  static const ImportLoss* FindNew(const std::vector<ImportLoss>& losses,
                                   const std::vector<ImportLoss>& known, const Place& place) {
    for (const ImportLoss& loss : losses) {
      const bool old = std::any_of(known.begin(), known.end(), [&](const ImportLoss& one) {
        return one.field == loss.field && one.sentence == loss.sentence;
      });
      if (!old && Names(loss, place)) return &loss;
    }
    return nullptr;
  }

  void Compare(const Place& place, const Outcome& with, const Outcome& without) {
    const std::string path = TextOf(place.path);
    const bool inherited = place.field->verdict == FieldSupport::kInherited;
    const FieldSupport verdict = place.rule.verdict;
    if (!with.status.ok()) {
      const std::string& message = with.status.message();
      const bool named = std::any_of(
          place.names.begin(), place.names.end(),
          [&](const std::string& name) { return message.find(name) != std::string::npos; });
      const bool may =
          verdict == FieldSupport::kRefused || verdict == FieldSupport::kHonoured || inherited;
      EXPECT_TRUE(named && may) << path << ": " << message;
      return;
    }
    const bool differs = !without.status.ok() || !(with.job == without.job) ||
                         FindNew(without.losses, with.losses, place) != nullptr;
    const ImportLoss* told = FindNew(with.losses, base_outcome_.losses, place);
    switch (verdict) {
      case FieldSupport::kHonoured:
        if (place.rule.engine.empty()) {
          EXPECT_TRUE(differs || told != nullptr) << path << " is lost";
          if (differs) changing_->insert(NameOf(place.rule));
          honoured_->insert(NameOf(place.rule));
          break;
        }
        EXPECT_TRUE(differs || told != nullptr) << path << " is lost";
        honoured_->insert(NameOf(place.rule));
        if (!(with.job == without.job)) changing_->insert(NameOf(place.rule));
        EXPECT_TRUE(told != nullptr) << path << " is kept for one engine, and not told for others";
        if (told != nullptr && differs) {
          EXPECT_EQ(told->engine, place.rule.engine) << path << ": " << told->sentence;
          EXPECT_TRUE(!told->minor || !place.rule.warned_elsewhere)
              << path << ": " << told->sentence;
        }
        break;
      case FieldSupport::kWarned:
        ASSERT_TRUE(told != nullptr) << path << (differs ? " changes the job" : " is lost");
        EXPECT_FALSE(told->minor) << path << ": " << told->sentence;
        break;
      case FieldSupport::kNoted:
        EXPECT_TRUE(told != nullptr) << path << (differs ? " changes the job" : " is lost");
        break;
      default:
        ADD_FAILURE() << path << " is not refused"
                      << (told == nullptr ? "" : ": " + told->sentence);
    }
  }

  const json::value base_;
  const std::set<std::string> others_;
  const std::string beside_;
  std::set<std::string>* const honoured_;
  std::set<std::string>* const changing_;
  Outcome base_outcome_;
  std::string without_text_;  // the last one, which fields of one section share
  Outcome without_;
  std::vector<std::string> inside_;
  int checked_ = 0;
};

TEST(ForeignFields, AreAllHonouredToldOrRefused) {
  std::set<std::string> honoured;
  std::set<std::string> changing;
  int checked = 0;
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    checked += Walk(kind, &honoured, &changing).checked();
  }
  EXPECT_GT(checked, 5'000);
  for (const std::string& field : honoured) {
    EXPECT_TRUE(changing.contains(field)) << field << " changes no job of any kind";
  }
}

}  // namespace
}  // namespace shoal::importer
