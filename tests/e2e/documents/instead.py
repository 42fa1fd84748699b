"""Documented commands that the tests do not run as printed: what is run instead, how that ends, and why.

The key is the whole command as the document prints it. `shoal …` is run like any documented command, what else is given in the
checkout; CHECK_SCRIPT asks the script named by the command for its help and looks there for each option. How many commands are here
is asserted by documents_coverage_test.py, which also fails for an entry that no document has.
"""

CHECK_SCRIPT = "the options of a script"
_RELEASE = "a release build takes minutes; script/demo makes one in CI"
_SCRIPT = "takes minutes"
_DOCKER = "needs a Docker daemon; tests/cluster/docker_test.py runs jobs there"
_KUBERNETES = "needs a Kubernetes cluster; tests/cluster/kubernetes_test.py runs jobs there"
_SLURM = "needs Slurm; tests/cluster/slurm_test.py runs jobs there"
_MARATHON = "needs Marathon; tests/e2e/marathon_test.py runs jobs with a double"
_METRONOME = "needs Metronome; tests/e2e/metronome_test.py runs it with a double"
_FRAMEWORK = "needs the framework; script/test --matrix runs it"
_NUMPY = "needs numpy or PyTorch and the Python module; tests/e2e/python/embedding_test.py runs it"
_SERVER = "serves until it is stopped, or needs such a server; tests/e2e/server runs it"
_STORE = "needs an S3 server; tests/e2e/stores/s3_test.py runs it with one"
_IMAGE = "the program is in its image only"
_SMALL = "the job of the tests has two workers and no such line"
_NUMBERS = "the job of the tests reports no numbers; tests/e2e/curves_test.py draws those of a real one"

# Command: (what is run instead, its exit code, why).
INSTEAD = {
    "build/release/shoal run examples/embedding/job.yaml": ("shoal plan examples/embedding/job.yaml", 0, _NUMPY),
    "build/release/shoal run examples/embedding/small.yaml": ("shoal plan examples/embedding/small.yaml", 0, _NUMPY),
    "shoal run examples/mpi/ring.yaml": ("shoal plan examples/mpi/ring.yaml", 0, _FRAMEWORK),
    "shoal run examples/pytorch/ddp.yaml": ("shoal plan examples/pytorch/ddp.yaml", 0, _FRAMEWORK),

    "shoal run job.yaml --engine docker": ("shoal plan job.yaml --engine docker", 0, _DOCKER),
    "shoal train word2vec --data text.txt --output vectors --engine docker":
        ("shoal train word2vec --data text.txt --output vectors --engine docker", 5, _DOCKER),
    "docker ps --filter label=shoal.dev/job=JOB": ("bash -n -c 'docker ps'", 0, _DOCKER),
    "docker ps -aq --filter label=shoal.dev/job=JOB | xargs -r docker rm -f":
        ("bash -n -c 'docker ps -aq --filter label=shoal.dev/job=JOB | xargs -r docker rm -f'", 0, _DOCKER),
    "docker build -t shoal -f docker/Dockerfile .": ("test -f docker/Dockerfile", 0, _DOCKER),
    "docker run --read-only --tmpfs /tmp -v shoal:/state shoal train word2vec --help": ("grep -q /state docker/Dockerfile", 0, _DOCKER),

    "shoal run job.yaml --engine kubernetes": ("shoal plan job.yaml --engine kubernetes", 0, _KUBERNETES),
    "shoal run job.yaml --engine kubernetes --set kubernetes.namespace=research":
        ("shoal plan job.yaml --engine kubernetes --set kubernetes.namespace=research", 0, _KUBERNETES),
    "helm install shoal deploy/helm/shoal --namespace research --create-namespace --set 'users={ann,bob}'":
        ("test -f deploy/helm/shoal/Chart.yaml && grep -q ^users: deploy/helm/shoal/values.yaml", 0, _KUBERNETES),
    "kubectl -n NAMESPACE delete jobs,services,secrets,pods -l shoal.dev/job=JOB":
        ("grep -rq shoal.dev/job src/engine", 0, _KUBERNETES),

    "shoal run job.yaml --engine slurm": ("shoal plan job.yaml --engine slurm", 0, _SLURM),

    "cmake --preset release": ("grep -q '\"name\": \"release\"' CMakePresets.json", 0, _RELEASE),
    "cmake --build --preset release": ("grep -q '\"name\": \"release\"' CMakePresets.json", 0, _RELEASE),
    "cmake --build build/release && cmake --install build/release --prefix /usr/local": ("grep -q 'install(' cmake/install.cmake", 0, _RELEASE),
    "cmake --install build/release --prefix /usr/local": ("grep -q 'install(' cmake/install.cmake", 0, _RELEASE),
    "ninja -C build/release python_wheel": ("grep -rq python_wheel python CMakeLists.txt", 0, _RELEASE),
    "ninja -C build/release shoal_python": ("grep -rq shoal_python python CMakeLists.txt", 0, _RELEASE),
    "script/bootstrap && cmake --preset release && ninja -C build/release shoal shoal_python": (CHECK_SCRIPT, 0, _RELEASE),
    "bible -f -l0 gen1:1-rev22:21 | examples/text/prepare.py | zstd --ultra -22 -o examples/text/kjv.txt.zst":
        ("test -x examples/text/prepare.py && test -f examples/text/kjv.txt.zst", 0, "needs the package bible-kjv, and takes a minute"),

    "script/bench logistic --train train.libsvm --test test.libsvm": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/bench small-jobs": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/bench word2vec --corpus TEXT --megabytes 40": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/bench word2vec --quality --corpus TEXT --pairs wordsim353.tsv --analogies questions-words.txt": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/package": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/package deb tar": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/bootstrap build": (CHECK_SCRIPT, 0, "installs packages"),
    "script/ci": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/demo": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/faults --seed 40000 --build release": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/lint --fix": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/lint --locks": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/test": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/test --asan | --tsan": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/test --filter REGEX": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/test --slow": (CHECK_SCRIPT, 0, _SCRIPT),
    "script/test-cluster slurm; script/bench kubernetes": (CHECK_SCRIPT, 0, _SCRIPT),
}
