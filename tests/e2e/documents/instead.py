"""What the tests of pages run in the place of a documented command that another suite runs as printed (places.py), only where a cluster is or
in continuous integration, and of those few that nothing runs as printed. So each is checked here too, on every machine.

The key is the whole command as the document prints it. `shoal …` is run like any documented command, what else is given in the
checkout; CHECK_SCRIPT asks the script named by the command for its help and looks there for each option. documents_coverage_test.py
fails for an entry that no document has, and asserts how many commands nothing runs.
"""

CHECK_SCRIPT = "the options of a script"

# Command: (what is run instead, its exit code).
INSTEAD = {
    "shoal run job.yaml --engine docker": ("shoal plan job.yaml --engine docker", 0),
    "shoal train word2vec --data text.txt --output vectors --engine docker":
        ("shoal train word2vec --data text.txt --output vectors --engine docker", 5),
    "docker ps --filter label=shoal.dev/job=JOB": ("bash -n -c 'docker ps'", 0),
    "docker ps -aq --filter label=shoal.dev/job=JOB | xargs -r docker rm -f":
        ("bash -n -c 'docker ps -aq --filter label=shoal.dev/job=JOB | xargs -r docker rm -f'", 0),
    "docker build -t shoal -f docker/Dockerfile .": ("test -f docker/Dockerfile", 0),
    "docker run --read-only --tmpfs /tmp -v shoal:/state shoal train word2vec --help": ("grep -q /state docker/Dockerfile", 0),

    "shoal run job.yaml --engine kubernetes": ("shoal plan job.yaml --engine kubernetes", 0),
    "shoal run job.yaml --engine kubernetes --set kubernetes.namespace=research":
        ("shoal plan job.yaml --engine kubernetes --set kubernetes.namespace=research", 0),
    "helm install shoal deploy/helm/shoal --namespace research --create-namespace --set 'users={ann,bob}'":
        ("test -f deploy/helm/shoal/Chart.yaml && grep -q ^users: deploy/helm/shoal/values.yaml", 0),
    "kubectl -n NAMESPACE delete jobs,services,secrets,pods -l shoal.dev/job=JOB":
        ("grep -rq shoal.dev/job src/engine", 0),

    "shoal server --operator": ("shoal server --help", 0),
    "shoal server --operator --operator-team research=red": ("shoal server --help", 0),
    "shoal server --operator --operator-team research=red --operator-team '*=blue'": ("shoal server --help", 0),
    "helm install shoal deploy/helm/shoal-server --namespace shoal --create-namespace --set image.repository=registry.example/shoal/shoal":
        ("test -f deploy/helm/shoal-server/Chart.yaml && grep -q ^image: deploy/helm/shoal-server/values.yaml", 0),
    "kubectl apply --server-side -f deploy/helm/shoal-server/files/shoaljob.yaml": ("test -f deploy/helm/shoal-server/files/shoaljob.yaml", 0),
    "kubectl -n NAMESPACE patch shoaljob NAME --type=merge -p '{\"metadata\":{\"finalizers\":null}}'": ("grep -q shoal.dev/job src/api/operator/shoal_job.h", 0),

    "shoal run job.yaml --engine slurm": ("shoal plan job.yaml --engine slurm", 0),

    "cmake --preset release": ("grep -q '\"name\": \"release\"' CMakePresets.json", 0),
    "cmake --build --preset release": ("grep -q '\"name\": \"release\"' CMakePresets.json", 0),
    "cmake --build build/release && cmake --install build/release --prefix /usr/local": ("grep -q 'install(' cmake/install.cmake", 0),
    "cmake --install build/release --prefix /usr/local": ("grep -q 'install(' cmake/install.cmake", 0),
    "ninja -C build/release python_wheel": ("grep -rq python_wheel python CMakeLists.txt", 0),
    "ninja -C build/release shoal_python": ("grep -rq shoal_python python CMakeLists.txt", 0),
    "script/bootstrap && cmake --preset release && ninja -C build/release shoal shoal_python": (CHECK_SCRIPT, 0),
    "bible -f -l0 gen1:1-rev22:21 | examples/text/prepare.py | zstd --ultra -22 -o examples/text/kjv.txt.zst":
        ("test -x examples/text/prepare.py && test -f examples/text/kjv.txt.zst", 0),

    "script/bench logistic --train train.libsvm --test test.libsvm": (CHECK_SCRIPT, 0),
    "script/bench small-jobs": (CHECK_SCRIPT, 0),
    "script/bench word2vec --corpus TEXT --megabytes 40": (CHECK_SCRIPT, 0),
    "script/bench word2vec --quality --corpus TEXT --pairs wordsim353.tsv --analogies questions-words.txt": (CHECK_SCRIPT, 0),
    "script/package": (CHECK_SCRIPT, 0),
    "script/page": (CHECK_SCRIPT, 0),
    "script/package deb tar": (CHECK_SCRIPT, 0),
    "script/bootstrap build": (CHECK_SCRIPT, 0),
    "script/ci": (CHECK_SCRIPT, 0),
    "script/demo": (CHECK_SCRIPT, 0),
    "script/faults --seed 40000 --build release": (CHECK_SCRIPT, 0),
    "script/lint --fix": (CHECK_SCRIPT, 0),
    "script/lint --locks": (CHECK_SCRIPT, 0),
    "script/test": (CHECK_SCRIPT, 0),
    "script/test --asan": (CHECK_SCRIPT, 0),
    "script/test --tsan": (CHECK_SCRIPT, 0),
    "script/test --filter REGEX": (CHECK_SCRIPT, 0),
    "script/test --slow": (CHECK_SCRIPT, 0),
    "script/test-cluster slurm": (CHECK_SCRIPT, 0),
    "script/bench kubernetes": (CHECK_SCRIPT, 0),
}

# Commands of scripts that a stage of script/ci runs as printed, or with further options behind, and one that a test of the slow lane runs:
# (script, its line).
STAGES = {
    "script/test": ("script/ci", "stage test script/test"),
    "script/test --filter REGEX": ("script/ci", "stage filter within_budget script/test --filter "),
    "script/test --asan": ("script/ci", "stage asan within_budget script/test --asan"),
    "script/test --tsan": ("script/ci", "stage tsan within_budget script/test --tsan"),
    "script/lint --locks": ("script/ci", "stage locks within_budget script/lint --locks"),
    "script/demo": ("script/ci", "stage demo script/demo"),
    "script/page": ("script/ci", "stage page within_budget script/page"),
    "script/package": ("script/ci", "stage package within_budget script/package"),
    "script/test-cluster slurm": ("script/ci", "stage slurm within_budget script/test-cluster slurm"),
    "script/bootstrap build": ("script/demo", '"$root/script/bootstrap" build'),
    "script/ci": (".ci/run", '/../script/ci"'),
    "script/faults --seed 40000 --build release": ("tests/e2e/faults/fault_slow_test.py", "script/faults --seed 40000 --build release"),
}

# Commands that nothing runs as printed, and why.
NOWHERE = {
    "docker build -t shoal -f docker/Dockerfile .":
        "the tests' daemon has no registry to pull Debian from; SHOAL_TEST_OWN_IMAGE=1 script/test-cluster docker test_our_own_image builds the "
        "same file on a Debian made there",
    "script/test --slow": "is the slow lane itself, which takes hours",
}
