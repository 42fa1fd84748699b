"""What is written for clusters: the chart gives the rights that deploy/kubernetes/rbac.yaml gives and no others, and, where helm is
(tests/cluster/helm_binary.sh builds it), it is sound and makes what its values say."""
import os
import re
import shutil
import subprocess
import unittest

SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CHART = os.path.join(SOURCE, "deploy", "helm", "shoal")
SERVER_CHART = os.path.join(SOURCE, "deploy", "helm", "shoal-server")
BIN = os.environ.get("SHOAL_KUBE_BIN") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "shoal/kubebin/bin")
HELM = shutil.which("helm", path=BIN + os.pathsep + os.environ.get("PATH", ""))


def read(*path):
    with open(os.path.join(SOURCE, *path)) as file:
        return file.read()


def rules(text, kind):
    """The lines of the role's rules, without what is said about them."""
    part = next(one for one in re.split(r"^---.*$", text, flags=re.M) if re.search(rf"^kind: {kind}$", one, re.M))
    lines = part[part.index("\nrules:\n"):].splitlines()
    return [line for line in lines if re.match(r"(- | {2})\w", line)]


class Rights(unittest.TestCase):
    def test_the_chart_gives_those_of_the_file(self):
        plain = read("deploy", "kubernetes", "rbac.yaml")
        self.assertGreater(len(rules(plain, "Role")), 20)
        self.assertEqual(rules(read("deploy/helm/shoal/templates/role.yaml"), "Role"), rules(plain, "Role"))
        self.assertEqual(rules(read("deploy/helm/shoal/templates/nodes.yaml"), "ClusterRole"), rules(plain, "ClusterRole"))

    def test_none_of_them_is_for_all(self):
        self.assertNotIn("*", "".join(rules(read("deploy", "kubernetes", "rbac.yaml"), "Role")))


@unittest.skipUnless(HELM, "there is no helm here; tests/cluster/helm_binary.sh builds it")
class Chart(unittest.TestCase):
    def helm(self, *words, code=0):
        done = subprocess.run([HELM, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def template(self, *words, code=0):
        return self.helm("template", "r", CHART, "--namespace", "research", "--kube-version", "1.29.0", *words, code=code)

    def test_it_is_sound(self):
        self.helm("lint", "--strict", CHART)

    def test_by_itself_it_is_of_its_namespace_alone(self):
        kinds = re.findall(r"^kind: (\w+)$", self.template(), re.M)
        self.assertEqual(sorted(kinds), ["ConfigMap", "Role", "RoleBinding", "ServiceAccount"])

    def test_all_that_it_can_make(self):
        text = self.template("--set", "listNodes=true,priorityClass.create=true,quota.pods=20,users[0]=ann,groups[0]=ml,serviceAccounts[0].name=ci",
                             "--set", "image.digest=sha256:" + "0" * 64)
        for words in ("kind: ClusterRoleBinding", "kind: PriorityClass", 'pods: "20"', "kind: User, name: \"ann\"", "name: ci",
                      'SHOAL_KUBE_LAUNCHER_IMAGE: "registry.example/shoal/launcher@sha256:000'):
            self.assertIn(words, text)

    def test_without_anybody_there_is_no_binding(self):
        self.assertNotIn("RoleBinding", self.template("--set", "serviceAccount.create=false,listNodes=true"))

    def test_misspelt_values_are_refused(self):
        self.assertIn("serviceAcount", self.template("--set", "serviceAcount.create=false", code=1))


@unittest.skipUnless(HELM, "there is no helm here; tests/cluster/helm_binary.sh builds it")
class ServerChart(unittest.TestCase):
    def template(self, *words, code=0):
        """The objects as texts, and all of it."""
        done = subprocess.run([HELM, "template", "r", SERVER_CHART, "--namespace", "shoal", "--kube-version", "1.29.0", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    @staticmethod
    def kinds(text):
        return sorted(re.findall(r"^kind: (\w+)$", text, re.M))

    def test_it_is_sound(self):
        done = subprocess.run([HELM, "lint", "--strict", SERVER_CHART], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_by_itself(self):
        text = self.template()
        self.assertEqual(self.kinds(text), ["ClusterRole", "ClusterRoleBinding", "NetworkPolicy", "Role", "RoleBinding", "Service", "ServiceAccount", "StatefulSet"])
        self.assertIn('"kind": "CustomResourceDefinition"', text)
        self.assertIn('"helm.sh/resource-policy": "keep"', text)
        for words in ('"--operator-team=*=default"', "--tls-self-signed", "--name=r.shoal.svc", "readOnlyRootFilesystem: true", "storage: 20Gi",
                      'value: "registry.example/shoal/shoal:1"'):
            self.assertIn(words, text)

    def test_its_rights_are_those_of_the_files(self):
        files = rules(read("deploy", "kubernetes", "rbac.yaml"), "Role") + rules(read("deploy", "kubernetes", "operator.yaml"), "Role")
        text = self.template()
        part = text[text.index("kind: ClusterRole\n"):]
        lease = text[text.index("name: r-lease\n"):]
        self.assertEqual(rules("---\n" + part, "ClusterRole") + rules("---\nkind: Role\n" + lease, "Role"), files)
        self.assertNotIn("*", "".join(files))

    def test_in_some_namespaces(self):
        text = self.template("--set", "namespaces={red,blue},operator.teams.red=a,operator.teams.\\*=null")
        self.assertEqual(self.kinds(text).count("Role"), 3)
        self.assertNotIn("kind: ClusterRole", text)
        self.assertIn("  namespace: blue\n", text)
        self.assertIn("--operator-team=red=a", text)
        self.assertIn("not in namespaces", self.template("--set", "namespaces={red},operator.teams.green=a", code=1))

    def test_all_that_it_can_make(self):
        text = self.template("--set", "ingress.enabled=true,ingress.className=nginx,ingress.tlsSecret=web,tls.secret=cert,persistence.existingClaim=mine",
                             "--set", "args={--queues=/state/queues.yaml},env.SHOAL_LOG=info,launcher=registry.example/launcher:2,service.type=LoadBalancer",
                             "--set", "networkPolicy.from[0].namespaceSelector.matchLabels.team=red")
        for words in ("kind: Ingress", "ingressClassName: nginx", "secretName: web", "--tls-cert=/tls/tls.crt", "claimName: mine", '"--queues=/state/queues.yaml"',
                      'value: "registry.example/launcher:2"', "type: LoadBalancer", "team: red"):
            self.assertIn(words, text)
        self.assertNotIn("--tls-self-signed", text)
        self.assertNotIn("volumeClaimTemplates", text)

    def test_without_an_operator(self):
        text = self.template("--set", "operator.enabled=false,networkPolicy.enabled=false,persistence.enabled=false")
        for words in ("CustomResourceDefinition", "--operator", "shoaljobs", "leases", "NetworkPolicy", "volumeClaimTemplates"):
            self.assertNotIn(words, text)

    def test_misspelt_values_are_refused(self):
        self.assertIn("operater", self.template("--set", "operater.enabled=false", code=1))


if __name__ == "__main__":
    unittest.main()
