// What is sent to a cluster, what its words mean, and what becomes of a job's tasks by them;
// without a cluster. tests/contract and script/test-cluster kubernetes run against a real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "engine/kubernetes/decode.h"
#include "engine/kubernetes/image_volumes.h"
#include "engine/kubernetes/kube_client.h"
#include "engine/kubernetes/kube_config.h"
#include "engine/kubernetes/kube_exec.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/plan_jobs.h"
#include "engine/kubernetes/pod_relay.h"
#include "engine/kubernetes/test_kube_job.h"
#include "engine/kubernetes/websocket_frames.h"

namespace shoal::engine::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// ---- kubeconfig ----

constexpr const char* kConfig = R"(
apiVersion: v1
clusters:
- {name: far, cluster: {server: "https://far.example:6443", proxy-url: "http://proxy:3128"}}
- name: near
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: aGVsbG8=, tls-server-name: kube}
users:
- {name: me, user: {token: abc}}
- {name: plugin, user: {exec: {command: ./get-token, args: [--x], apiVersion: client.authentication.k8s.io/v1}}}
contexts:
- {name: one, context: {cluster: near, user: me, namespace: team}}
- {name: two, context: {cluster: far, user: plugin}}
current-context: one
)";

TEST(KubeConfig, TheCurrentContextAndOthers) {
  const auto one = ReadKubeConfig(kConfig, "/home/me/config", "");
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(one->server, "https://10.0.0.1:6443");
  EXPECT_EQ(one->tls.authorities, "hello");
  EXPECT_EQ(one->tls.server_name, "kube");
  EXPECT_TRUE(one->tls.verify);
  EXPECT_EQ(one->token, "abc");
  EXPECT_EQ(one->name_space, "team");
  const auto two = ReadKubeConfig(kConfig, "/home/me/config", "two");
  ASSERT_TRUE(two.ok()) << two.status().message();
  EXPECT_EQ(two->proxy, "http://proxy:3128");
  EXPECT_EQ(two->name_space, "default");
  EXPECT_THAT(two->exec.argv, ElementsAre("/home/me/./get-token", "--x"));
}

TEST(KubeConfig, WhatIsWrongIsSaid) {
  EXPECT_THAT(ReadKubeConfig(kConfig, "f", "three").status().message(),
              HasSubstr("there is no context 'three'"));
  EXPECT_THAT(ReadKubeConfig("a: [", "f", "").status().message(), HasSubstr("f:1"));
  EXPECT_FALSE(ReadKubeConfig("{}", "f", "").ok());
  EXPECT_FALSE(
      ReadKubeConfig("{current-context: a, contexts: [{name: a, context: {cluster: b}}]}", "f", "")
          .ok());
}

TEST(KubeConfig, SeveralFilesAndThePod) {
  auto dir = TempDir::Create("kube");
  ASSERT_TRUE(dir.ok());
  const auto write = [&](const char* name, const char* text) {
    EXPECT_TRUE(WriteFileAtomically(dir->path() / name, text).ok());
    return (dir->path() / name).string();
  };
  KubeConfigSources place;
  place.kubeconfig = write("a", "{current-context: two}") + ":" + write("b", kConfig) + ":/none";
  place.https_proxy = "http://other:1";
  auto access = FindCluster(place, "");
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access->context, "two");
  EXPECT_EQ(access->proxy, "http://proxy:3128");
  access = FindCluster(place, "one");
  ASSERT_TRUE(access.ok());
  EXPECT_EQ(access->proxy, "http://other:1");
  KubeConfigSources none;
  EXPECT_EQ(FindCluster(none, "").status().code(), Code::kUnavailable);
  none.service_host = "10.0.0.1";
  none.service_port = "443";
  none.service_account = dir->path();
  write("token", "tok\n");
  write("ca.crt", "ca");
  write("namespace", "ns");
  access = FindCluster(none, "");
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access->server, "https://10.0.0.1:443");
  EXPECT_EQ(access->name_space, "ns");
  auto credentials = Credentials::Make(*access, RealClock::Get());
  ASSERT_TRUE(credentials.ok());
  EXPECT_EQ((*credentials)->Authorization().value_or(""), "Bearer tok");
}

TEST(KubeConfig, AnExecPluginIsAsked) {
  auto access = ReadKubeConfig(kConfig, "/x/config", "two");
  ASSERT_TRUE(access.ok());
  access->exec.argv = {
      "/bin/sh", "-c",
      "echo '{\"status\": {\"token\": \"t'$A'\"}}'; test -n \"$KUBERNETES_EXEC_INFO\""};
  access->exec.env = {{"A", "5"}};
  auto credentials = Credentials::Make(*access, RealClock::Get());
  ASSERT_TRUE(credentials.ok()) << credentials.status().message();
  EXPECT_EQ((*credentials)->Authorization().value_or(""), "Bearer t5");
  access->exec.argv = {"/bin/sh", "-c", "echo log in first >&2; exit 3"};
  EXPECT_THAT(Credentials::Make(*access, RealClock::Get()).status().message(),
              HasSubstr("exited with code 3: log in first"));
}

// ---- Objects ----

TEST(Objects, ARoleIsOneJobWhatItsSize) {
  const JobChanges changes = Plan(SomeJob(500));
  ASSERT_THAT(changes.make, SizeIs(2));
  EXPECT_EQ(changes.make[0].role, "coordinator");
  EXPECT_EQ(changes.make[1].count, 500);
  EXPECT_THAT(changes.remove, IsEmpty());
  const json::object object = JobObject(kOptions, SomeJob(), changes.make[1],
                                        {"shoal-text-0a1b2c-coordinator", "u"}, false);
  const json::object& spec = object.at("spec").get_object();
  EXPECT_EQ(spec.at("completionMode"), "Indexed");
  EXPECT_EQ(spec.at("completions"), 500);
  EXPECT_EQ(spec.at("parallelism"), 500);
  EXPECT_FALSE(spec.contains("ttlSecondsAfterFinished"));  // its owner has it
  const json::value& container = spec.at("template").at("spec").at("containers").at(0);
  const Endpoint coordinator = CoordinatorAddress("text-0a1b2c", "team");
  EXPECT_EQ(
      container.at("command"),
      (json::array{kLauncherSource, "task", "--index", "$(SHOAL_INDEX)", "--incarnation",
                   "$(SHOAL_INCARNATION)", "--coordinator",
                   coordinator.host + ":" + std::to_string(coordinator.port), "--pay", "$$HOME"}));
}

TEST(Objects, TheLauncherIsCopiedIntoOtherImagesOnly) {
  const auto spec_of = [](const DesiredJob& job, size_t task) {
    return PodTemplate(kOptions, job, job.tasks[task], "team", true).at("spec").as_object();
  };
  DesiredJob job = SomeJob();
  EXPECT_FALSE(spec_of(job, 1).contains("initContainers"));
  job.image = "acme/train:7";
  EXPECT_FALSE(spec_of(job, 0).contains("initContainers"));  // the coordinator
  const json::object spec = spec_of(job, 1);
  EXPECT_EQ(spec.at("initContainers").at(0).at("command"),
            (json::array{kLauncherSource, "install", kLauncherPath}));
  EXPECT_EQ(spec.at("containers").at(0).at("command").at(0), kLauncherPath);
  EXPECT_EQ(spec.at("containers").at(0).at("image"), "acme/train:7");
}

TEST(Objects, ThePodOfATaskWithLimitsAloneIsGuaranteed) {
  DesiredJob job = SomeJob();
  job.image = "acme/train:7";
  job::Resources& wants = job.tasks[1].resources;
  wants.cpu = 2;
  wants.memory_bytes = 1 << 30;
  const auto launcher = [&] {
    const json::object pod = PodTemplate(kOptions, job, job.tasks[1], "team", true);
    return pod.at("spec").at("initContainers").at(0).as_object();
  };
  ASSERT_TRUE(launcher().contains("resources"));
  EXPECT_EQ(ToText(launcher().at("resources")),
            R"({"requests":{"cpu":"2000m","memory":"1073741824"},)"
            R"("limits":{"cpu":"2000m","memory":"1073741824"}})");
  wants.cpu_request = 1;
  EXPECT_FALSE(launcher().contains("resources"));
}

// The cluster itself stops the pods of a node that it drains or preempts.
TEST(Objects, ADrainedPodHasTheTimeOfItsJob) {
  const auto seconds = [](std::chrono::milliseconds grace) {
    DesiredJob job = SomeJob();
    job.stop_grace = grace;
    const json::object pod = PodTemplate(kOptions, job, job.tasks[1], "team", true);
    return pod.at("spec").at("terminationGracePeriodSeconds").as_int64();
  };
  EXPECT_EQ(seconds(std::chrono::seconds(10)), 10);
  EXPECT_GE(seconds(std::chrono::minutes(10)), 600);
}

TEST(Objects, WhereAnImageCanBeAVolumeNothingIsCopied) {
  ObjectOptions options = kOptions;
  options.image_volumes = true;
  DesiredJob job = SomeJob();
  EXPECT_FALSE(BringsLauncher(options, job));
  job.image = "acme/train:7";
  EXPECT_TRUE(BringsLauncher(options, job));
  const json::value spec = PodTemplate(options, job, job.tasks[1], "team", true).at("spec");
  EXPECT_FALSE(spec.as_object().contains("initContainers"));
  EXPECT_EQ(spec.at("volumes").at(0).at("image"),
            (json::object{{"reference", "launcher:1"}, {"pullPolicy", "IfNotPresent"}}));
  const json::value& container = spec.at("containers").at(0);
  EXPECT_EQ(container.at("image"), "acme/train:7");
  EXPECT_EQ(container.at("command").at(0), kLauncherMounted);
  EXPECT_EQ(container.at("volumeMounts").at(0).at("mountPath"), "/.shoal/image");
}

TEST(ImageVolumes, AreUsedWhereAllNodesHaveThem) {
  const auto nodes = [](std::initializer_list<std::pair<const char*, const char*>> list) {
    json::array items;
    for (const auto& [kubelet, runtime] : list) {
      const json::object info{{"kubeletVersion", kubelet}, {"containerRuntimeVersion", runtime}};
      items.emplace_back(json::object{{"status", {{"nodeInfo", info}}}});
    }
    return json::object{{"items", std::move(items)}};
  };
  const json::object new_one{{"gitVersion", "v1.36.1-gke.5"}};
  const json::object old_one{{"gitVersion", "v1.33.13"}};
  EXPECT_TRUE(NodesMountImages(new_one, nodes({{"v1.35.2+k3s1", "containerd://2.1.4-k3s1"},
                                               {"v1.36.0", "containerd://2.2.0"}})));
  // Its kubelets have the feature off, whatever the server says.
  EXPECT_FALSE(NodesMountImages(
      new_one, nodes({{"v1.36.0", "containerd://2.2.0"}, {"v1.34.9", "containerd://2.2.0"}})));
  EXPECT_TRUE(NodesMountImages(old_one, nodes({{"v1.33.13", "containerd://2.1.4"}})));
  EXPECT_FALSE(NodesMountImages(old_one, nodes({{"v1.32.1", "containerd://2.1.4"}})));
  EXPECT_FALSE(NodesMountImages(new_one, nodes({{"v1.36.0", "containerd://1.7.27"}})));
  EXPECT_FALSE(NodesMountImages(new_one, nodes({{"v1.36.0", "containerd://2.0.5"}})));
  EXPECT_FALSE(NodesMountImages(new_one, nodes({{"v1.36.0", "cri-o://1.36.0"}})));
  EXPECT_FALSE(NodesMountImages(new_one, nodes({})));
  EXPECT_FALSE(NodesMountImages({}, nodes({{"", ""}})));
  EXPECT_FALSE(NodesMountImages(new_one, {{"items", json::array{1, json::object()}}}));
}

TEST(Objects, NamesAreDnsLabels) {
  for (const std::string& id : {std::string("a"), std::string("Text_8.x"), std::string(60, 'x')}) {
    for (const std::string& role :
         {std::string("worker"), std::string("Parameter_Server.long-name")}) {
      const std::string name = RoleJobName(id, role);
      EXPECT_LE(name.size(), 57u) << name;  // "-" and an index below 10,000 make it a pod's name
      EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
      EXPECT_FALSE(name.ends_with('-'));
    }
  }
  EXPECT_NE(BaseName("Ab"), BaseName("ab"));
}

TEST(Objects, RequestsAreNotLimitsAndARoleHasItsOwnResources) {
  DesiredJob job = SomeJob();
  job.kubernetes.resources = {"rdma/hca=1", "other:google.com/tpu=8",
                              job.tasks[1].role + ":example.com/nic=2"};
  job.kubernetes.annotations = {{"sidecar.istio.io/inject", "false"}};
  job.tasks[1].resources = {};
  job.tasks[1].resources.cpu = 2;
  job.tasks[1].resources.cpu_request = 0.5;
  job.tasks[1].resources.memory_request = 1 << 26;
  const json::object pod = PodTemplate(kOptions, job, job.tasks[1], "team", true);
  EXPECT_EQ(pod.at("metadata").at("annotations"),
            (json::value{{"sidecar.istio.io/inject", "false"}}));
  const json::value& resources = pod.at("spec").at("containers").at(0).at("resources");
  EXPECT_EQ(resources.at("limits"),
            (json::value{{"rdma/hca", "1"}, {"example.com/nic", "2"}, {"cpu", "2000m"}}));
  EXPECT_EQ(
      resources.at("requests"),
      (json::value{
          {"rdma/hca", "1"}, {"example.com/nic", "2"}, {"cpu", "500m"}, {"memory", "67108864"}}));
}

TEST(Objects, WhatCannotBeAskedForIsSaid) {
  DesiredJob job = SomeJob();
  EXPECT_TRUE(CheckObjects(kOptions, job).ok());
  job.kubernetes.volumes = {"pvc:data"};
  EXPECT_THAT(CheckObjects(kOptions, job).message(), HasSubstr("expected pvc:CLAIM:/TARGET"));
  job = SomeJob();
  job.kubernetes.volumes = {"pvc:a:/data", "host:/x:/data:ro"};
  EXPECT_THAT(CheckObjects(kOptions, job).message(), HasSubstr("two of them"));
  job = SomeJob();
  job.kubernetes.tolerations = {"gpu=a:Never"};
  EXPECT_THAT(CheckObjects(kOptions, job).message(), HasSubstr("NoSchedule"));
  job = SomeJob();
  job.kubernetes.resources = {"rdma/hca"};
  EXPECT_THAT(CheckObjects(kOptions, job).message(), HasSubstr("NAME=QUANTITY"));
  job = SomeJob();
  job.container.programs = true;
  EXPECT_THAT(CheckObjects(kOptions, job).message(), HasSubstr("names no image"));
}

TEST(Objects, ARoleHasPodsOfItsOwn) {
  DesiredJob job = SomeJob();
  const std::string role = job.tasks[1].role;
  job.kubernetes.node_selector = {{"disk", "ssd"}};
  job.kubernetes.tolerations = {"cpu"};
  job.kubernetes.labels = {{"team", "x"}};
  job::PodSettings& ask = job.pod_settings[role];
  ask.node_selector = {{"gpu", "a100"}};
  ask.labels = {{"part", "y"}};
  ask.service_account = "admin";
  ask.host_network = true;
  ask.volumes = {"pvc:data:/data"};
  ask.runtime_class = "nvidia";
  ask.container_security_context = R"({"privileged":true})";
  ASSERT_TRUE(CheckObjects(kOptions, job).ok()) << CheckObjects(kOptions, job).message();
  const json::object mine = PodTemplate(kOptions, job, job.tasks[1], "team", true);
  const json::value& spec = mine.at("spec");
  EXPECT_EQ(spec.at("nodeSelector"), (json::value{{"gpu", "a100"}}));
  EXPECT_EQ(spec.at("tolerations").as_array().size(), 3u);
  EXPECT_EQ(mine.at("metadata").at("labels").at("team"), "x");
  EXPECT_EQ(mine.at("metadata").at("labels").at("part"), "y");
  EXPECT_EQ(spec.at("serviceAccountName"), "admin");
  EXPECT_EQ(spec.at("runtimeClassName"), "nvidia");
  EXPECT_EQ(spec.at("hostNetwork"), true);
  const json::value& container = spec.at("containers").at(0);
  EXPECT_EQ(container.at("securityContext"), (json::value{{"privileged", true}}));
  for (const json::value& init : spec.as_object().contains("initContainers")
                                     ? spec.at("initContainers").as_array()
                                     : json::array())
    EXPECT_EQ(init.at("securityContext"), (json::value{{"allowPrivilegeEscalation", false}}));
  const std::string others = ToText(PodTemplate(kOptions, job, job.tasks[0], "team", true));
  for (const char* word :
       {"a100", "admin", "hostNetwork", "pvc", "privileged\":true", "nvidia", "\"part\""})
    EXPECT_EQ(others.find(word), std::string::npos) << word;
  EXPECT_THAT(others, HasSubstr(R"("nodeSelector":{"disk":"ssd"})"));
}

TEST(Objects, TheCoordinatorHasNoRights) {
  DesiredJob job = SomeJob();
  job.kubernetes.container_security_context =
      R"({"privileged":true,"readOnlyRootFilesystem":true,"capabilities":{"add":["SYS_ADMIN"],"drop":["ALL"]}})";
  ASSERT_EQ(job.tasks[0].role, "coordinator");
  const json::object pod = PodTemplate(kOptions, job, job.tasks[0], "team", true);
  EXPECT_EQ(pod.at("spec").at("containers").at(0).at("securityContext"),
            (json::value{{"allowPrivilegeEscalation", false},
                         {"readOnlyRootFilesystem", true},
                         {"capabilities", {{"drop", json::array{"ALL"}}}}}));
  const json::object worker = PodTemplate(kOptions, job, job.tasks[1], "team", true);
  EXPECT_EQ(worker.at("spec").at("containers").at(0).at("securityContext").at("privileged"), true);
}

TEST(Objects, AVolumeOfTheJobMayBeTheSharedMemory) {
  DesiredJob job = SomeJob();
  job.container.shm_bytes = 1 << 30;
  job.kubernetes.volumes = {"memory:16Gi:/dev/shm/", "empty:/a", "memory:/b"};
  ASSERT_TRUE(CheckObjects(kOptions, job).ok());
  const json::object pod = PodTemplate(kOptions, job, job.tasks[1], "team", true);
  const json::value& spec = pod.at("spec");
  std::multiset<std::string> targets;
  for (const json::value& mount : spec.at("containers").at(0).at("volumeMounts").as_array())
    targets.emplace(mount.at("mountPath").as_string());
  EXPECT_EQ(targets.count("/dev/shm"), 1u);
  const std::string volumes = ToText(spec.at("volumes"));
  EXPECT_THAT(volumes, HasSubstr(R"("emptyDir":{"medium":"Memory","sizeLimit":"16Gi"})"));
  EXPECT_THAT(volumes, HasSubstr(R"("emptyDir":{},"name":"volume-1")"));
  EXPECT_THAT(volumes, HasSubstr(R"("emptyDir":{"medium":"Memory"},"name":"volume-2")"));
}

TEST(Objects, WhatIsMountedAtTwoPlacesIsOneVolume) {
  DesiredJob job = SomeJob();
  job.kubernetes.volumes = {"pvc:data:/a", "pvc:data:/b:ro", "empty:/c", "empty:/d"};
  ASSERT_TRUE(CheckObjects(kOptions, job).ok());
  const json::object pod = PodTemplate(kOptions, job, job.tasks[1], "team", true);
  const json::value& spec = pod.at("spec");
  const std::string volumes = ToText(spec.at("volumes"));
  EXPECT_EQ(volumes.find("claimName"), volumes.rfind("claimName")) << volumes;
  const std::string mounts = ToText(spec.at("containers").at(0).at("volumeMounts"));
  EXPECT_THAT(mounts, HasSubstr(R"({"name":"volume-0","mountPath":"/a"})"));
  EXPECT_THAT(mounts, HasSubstr(R"({"name":"volume-0","mountPath":"/b","readOnly":true})"));
  EXPECT_THAT(mounts, HasSubstr(R"({"name":"volume-1","mountPath":"/c"})"));
  EXPECT_THAT(mounts, HasSubstr(R"({"name":"volume-2","mountPath":"/d"})"));
}

TEST(Objects, PodsThatNoClusterTakesAreRefusedHere) {
  const auto refused = [](const std::function<void(job::PodSettings*)>& change) {
    DesiredJob job = SomeJob();
    change(&job.pod_settings[job.tasks[1].role]);
    return CheckObjects(kOptions, job).message();
  };
  EXPECT_THAT(refused([](job::PodSettings* ask) {
                ask->volumes = {"empty:1Gi:/a", "empty:1Gi:/a/"};
              }),
              HasSubstr("two of them are mounted at /a"));
  EXPECT_THAT(refused([](job::PodSettings* ask) { ask->volumes = {"empty:/.shoal/job"}; }),
              HasSubstr("neither / nor below /.shoal"));
  EXPECT_THAT(refused([](job::PodSettings* ask) { ask->volumes = {"host:/a/../etc:/a"}; }),
              HasSubstr("got \"host:/a/../etc:/a\""));
  EXPECT_THAT(refused([](job::PodSettings* ask) { ask->volumes = {"nfs::/a:/a"}; }),
              HasSubstr("expected pvc"));
  EXPECT_THAT(refused([](job::PodSettings* ask) {
                ask->labels = {{"job-name", "x"}};
              }),
              HasSubstr("got job-name"));
  EXPECT_THAT(refused([](job::PodSettings* ask) {
                ask->container_security_context =
                    R"({"privileged":true,"allowPrivilegeEscalation":false})";
              }),
              HasSubstr("allowPrivilegeEscalation: false beside"));
  EXPECT_THAT(refused([](job::PodSettings* ask) {
                ask->security_context = R"({"runAsUser":0,"runAsNonRoot":true})";
              }),
              HasSubstr("the user 0"));
  EXPECT_EQ(refused([](job::PodSettings* ask) {
              ask->security_context = R"({"runAsUser":0,"runAsNonRoot":true})";
              ask->container_security_context = R"({"runAsUser":7})";
            }),
            "");
}

TEST(Objects, ThePlanShowsNoSecret) {
  DesiredJob job = SomeJob();
  job.tasks[1].env["MY_PASSWORD"] = "hunter2";
  job.tasks[2].env["MY_PASSWORD"] = "hunter2";
  const std::string text = DescribeObjects(kOptions, job, "team");
  EXPECT_THAT(text, HasSubstr("kubectl -n team delete"));
  EXPECT_THAT(text, HasSubstr("kind: Secret"));
  for (const char* secret : {"hunter2", "secret-token", "c2VjcmV0LXRva2Vu"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
}

// ---- Changes ----

TEST(PlanJobs, GrowsAndShrinksInPlace) {
  const JobChanges first = Plan(SomeJob(2));
  std::vector<JobView> there = {Made(first.make[0]), Made(first.make[1])};
  JobChanges changes = Plan(SomeJob(2), there);
  EXPECT_THAT(changes.make, IsEmpty());
  EXPECT_THAT(changes.resize, IsEmpty());
  EXPECT_THAT(changes.remove, IsEmpty());
  changes = Plan(SomeJob(5), there);
  ASSERT_THAT(changes.resize, SizeIs(1));
  EXPECT_EQ(changes.resize[0].count, 5);
  changes = Plan(SomeJob(1), there);
  ASSERT_THAT(changes.resize, SizeIs(1));
  EXPECT_EQ(changes.resize[0].count, 1);
  // Named again after it was given up: its incarnations go on.
  there[1].completions = 1;
  changes = Plan(SomeJob(2), there, {{{"worker", 1}, {3, true}}});
  ASSERT_THAT(changes.resize, SizeIs(1));
  EXPECT_EQ(changes.resize[0].bases.at(1), 3);
  changes = Plan(SomeJob(0), there);
  EXPECT_THAT(changes.remove, ElementsAre(there[1].name));
}

TEST(PlanJobs, WhatIsNotAlikeGetsAJobOfItsOwn) {
  DesiredJob job = SomeJob(2);
  job.tasks[2].argv.push_back("--other");
  JobChanges changes = Plan(job);
  ASSERT_THAT(changes.make, SizeIs(3));
  EXPECT_EQ(changes.make[2].single, 1);
  std::vector<JobView> there;
  for (const RoleJob& role : changes.make) there.push_back(Made(role));
  EXPECT_THAT(Plan(job, there).make, IsEmpty());
  // Changed and over: another takes its place; changed and alive: left alone.
  job.tasks[2].argv.push_back("--new");
  EXPECT_THAT(Plan(job, there).make, IsEmpty());
  changes = Plan(job, there, {{{"worker", 1}, {1, true}}});
  ASSERT_THAT(changes.make, SizeIs(1));
  EXPECT_EQ(changes.make[0].bases.at(1), 1);
  EXPECT_THAT(changes.remove, ElementsAre(there[2].name));
}

TEST(PlanJobs, ARoleWithAHoleKeepsWhatItMust) {
  const JobChanges first = Plan(SomeJob(3));
  std::vector<JobView> there = {Made(first.make[0]), Made(first.make[1])};
  DesiredJob job = SomeJob(3);
  job.tasks.erase(job.tasks.begin() + 1);  // worker 0
  const JobChanges changes = Plan(job, there);
  EXPECT_THAT(changes.make, IsEmpty());
  EXPECT_THAT(changes.remove, IsEmpty());
  EXPECT_THAT(changes.kept_longer, ElementsAre(TaskKey{"worker", 0}));
}

// A role's tasks are one Job, whose template stays what it is: who leaves gets another.
TEST(PlanJobs, WhoLeavesAnExcludedHostGetsAJobOfItsOwn) {
  const JobChanges first = Plan(SomeJob(3));
  std::vector<JobView> there = {Made(first.make[0]), Made(first.make[1])};
  DesiredJob job = SomeJob(3);
  job.tasks[2].excluded_hosts = {"node1"};        // worker 1
  EXPECT_THAT(Plan(job, there).make, IsEmpty());  // it runs
  JobChanges changes = Plan(job, there, {{{"worker", 1}, {1, false, true}}});
  EXPECT_THAT(changes.remove, IsEmpty());
  EXPECT_THAT(changes.resize, IsEmpty());
  ASSERT_THAT(changes.make, SizeIs(1));
  EXPECT_EQ(changes.make[0].single, 1);
  EXPECT_EQ(changes.make[0].bases.at(1), 1);
  EXPECT_THAT(ToText(changes.make[0].pod),
              HasSubstr(R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuring)"
                        R"(Execution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.nam)"
                        R"(e","operator":"NotIn","values":["node1"]}]}]}}})"));
  there.push_back(Made(changes.make[0]));
  EXPECT_THAT(Plan(job, there, {{{"worker", 1}, {2, false, false}}}).make, IsEmpty());
  // And once more.
  job.tasks[2].excluded_hosts = {"node1", "node2"};
  changes = Plan(job, there, {{{"worker", 1}, {2, false, true}}});
  ASSERT_THAT(changes.make, SizeIs(1));
  EXPECT_EQ(changes.make[0].bases.at(1), 2);
  EXPECT_THAT(changes.remove, ElementsAre(there[2].name));
}

// ---- What the server says ----

TEST(Decode, HostileTextHarmsNothing) {
  for (const char* text :
       {"", "{}", "[]", "{\"items\": 3}", "{\"items\": [1, {}, {\"metadata\": 2}]}"}) {
    const auto object = ParseJsonObject(text);
    if (!object.ok()) continue;
    (void)DecodePods(*object);
    (void)DecodeJobs(*object);
    (void)DecodeJob(*object);
    (void)DecodeFailedCreates(*object);
    (void)DecodeNodes(*object, "nvidia.com/gpu");
  }
  EXPECT_FALSE(DecodeWatchLine("{").ok());
  const auto gone = DecodeWatchLine(
      R"({"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}})");
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone->error_code, 410);
}

TEST(Decode, Quantities) {
  EXPECT_EQ(ReadQuantity("1500m"), 1.5);
  EXPECT_EQ(ReadQuantity("2"), 2);
  EXPECT_EQ(ReadQuantity("129Mi"), 129.0 * 1048576);
  EXPECT_EQ(ReadQuantity("1e3"), 1000);
  for (const char* wrong : {"", "x", "1Zi", "1 Gi"}) EXPECT_FALSE(ReadQuantity(wrong)) << wrong;
}

TEST(Decode, StatusesBecomeCodes) {
  const auto code = [](int status) {
    return ErrorOf({status, {}, R"({"kind": "Status", "message": "why"})"}).code();
  };
  EXPECT_EQ(code(403), Code::kPermissionDenied);
  EXPECT_EQ(code(404), Code::kNotFound);
  EXPECT_EQ(code(410), Code::kOutOfRange);
  EXPECT_EQ(code(503), Code::kUnavailable);
  EXPECT_EQ(ErrorOf({500, {}, "<html>"}).message(), "<html>");
}

TEST(Decode, ExecStatus) {
  EXPECT_EQ(DecodeExecStatus(R"({"status": "Success"})")->exit_code, 0);
  const char* failed = R"({"status": "Failure", "reason": "NonZeroExitCode",
      "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}})";
  EXPECT_EQ(DecodeExecStatus(failed)->exit_code, 7);
  EXPECT_FALSE(DecodeExecStatus("no").ok());
}

TEST(Frames, ComeBackAsTheyWere) {
  for (const size_t size : {0, 1, 125, 126, 65535, 65536}) {
    const std::string bytes(size, 'x');
    std::string frame = EncodeWebSocketMessage(bytes);
    // A server's are not masked.
    const size_t head = size < 126 ? 2 : size < 65536 ? 4 : 10;
    std::string plain = frame.substr(0, head) + bytes;
    plain[1] = static_cast<char>(plain[1] & 0x7f);
    WebSocketReader reader;
    std::vector<WebSocketReader::Message> messages;
    for (const char c : plain) ASSERT_TRUE(reader.Feed(std::string(1, c), &messages).ok());
    ASSERT_THAT(messages, SizeIs(1));
    EXPECT_EQ(messages[0].bytes, bytes);
    std::vector<WebSocketReader::Message> none;
    EXPECT_FALSE(WebSocketReader().Feed(frame, &none).ok());  // masked
  }
}

TEST(PodRelay, TheHeadIsOurs) {
  const auto head = RewriteHead(
      "GET /shoal/rendezvous HTTP/1.1\r\nHost: 127.0.0.1:1\r\nauthorization: Bearer evil\r\n"
      "Upgrade: websocket\r\n\r\n",
      "/api/v1/namespaces/n/pods/p:20000/proxy", "10.0.0.1:6443", "Bearer own");
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(*head,
            "GET /api/v1/namespaces/n/pods/p:20000/proxy/shoal/rendezvous HTTP/1.1\r\n"
            "Host: 10.0.0.1:6443\r\nAuthorization: Bearer own\r\nUpgrade: websocket\r\n\r\n");
  for (const char* wrong : {"POST / HTTP/1.1\r\n\r\n", "GET /../../secrets HTTP/1.1\r\n\r\n",
                            "GET / HTTP/1.0\r\n\r\n", "", "GET /a b HTTP/1.1\r\n\r\n"})
    EXPECT_FALSE(RewriteHead(wrong, "/p", "h", "").ok()) << wrong;
}

TEST(BackOffTimes, GrowToABoundWithChance) {
  EXPECT_GE(BackOff(0, 0).count(), 50);
  EXPECT_LE(BackOff(0, 12345).count(), 100);
  EXPECT_GE(BackOff(50, 0).count(), 2500);
  EXPECT_LE(BackOff(50, 99999).count(), 5000);
}

}  // namespace
}  // namespace shoal::engine::kubernetes
