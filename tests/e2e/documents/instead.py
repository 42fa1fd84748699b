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
_CATALOG = "needs a server with a catalogue; tests/e2e/server/catalog_test.py runs such commands"
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
    "shoal run marathon.json": ("shoal plan marathon.json", 0, _IMAGE),

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

    "shoal run job.yaml --engine marathon": ("shoal plan job.yaml --engine marathon", 0, _MARATHON),
    "dig +short SRV _coordinator._coordinator-text-vectors-7f3a2c-shoal._tcp.marathon.mesos":
        ("grep -rq _coordinator._ src/engine", 0, _MARATHON),
    "shoal schedule nightly.yaml --engine marathon": ("shoal plan nightly.yaml --engine marathon", 0, _METRONOME),
    "shoal schedule job.yaml --engine marathon --set 'schedule.cron=30 2 * * 1-5'":
        ("shoal plan job.yaml --engine marathon --set 'schedule.cron=30 2 * * 1-5'", 0, _METRONOME),
    "shoal schedule --list --engine marathon": ("shoal schedule --list --engine marathon", 5, _METRONOME),
    "shoal schedule --run nightly --engine marathon": ("shoal schedule --run nightly --engine marathon", 5, _METRONOME),
    "shoal schedule --remove nightly --engine marathon": ("shoal schedule --remove nightly --engine marathon", 5, _METRONOME),

    "shoal secret set db-password": ("shoal secret set db-password < password.txt", 0, "asks on a terminal"),
    "shoal server --state /var/lib/shoal": ("shoal server --help", 0, _SERVER),
    "shoal server --state /var/lib/shoal --listen 0.0.0.0:7117 --tls-self-signed --name ml.example":
        ("shoal server --help | grep -q -e --tls-self-signed", 0, _SERVER),
    "shoal server --listen 0.0.0.0:7117 --tls-cert server.crt --tls-key server.key":
        ("shoal server --listen 127.0.0.1:0 --tls-cert none --tls-key none", 4, _SERVER),
    "shoal server --store postgres://shoal@db/shoal --state /srv/shoal": ("shoal server --help | grep -q -e --store", 0, _SERVER),
    "shoal server --store postgres://shoal@db/shoal --state /shared/shoal --listen 0.0.0.0:7117 --tls-self-signed":
        ("shoal server --help | grep -q -e --url", 0, _SERVER),
    "shoal server backup /backup/monday --state /var/lib/shoal": ("shoal server backup copy --state none", 4, _SERVER),
    "shoal server restore /backup/monday --state /srv/shoal": ("shoal server restore none --state new", 2, _SERVER),
    "shoal login http://127.0.0.1:7117 --token-file /var/lib/shoal/administrator.token":
        ("shoal login --help | grep -q -e --token-file", 0, _SERVER),
    "shoal login https://ml.example:7117": ("shoal login --help", 0, _SERVER),
    "shoal login https://ml.example:7117 --fingerprint 3f9a…": ("shoal login https://ml.example:7117 --fingerprint 3f9a", 2, _SERVER),
    "shoal login https://ml.example:7117 --oidc": ("shoal login http://127.0.0.1:1 --oidc", 5, _SERVER),
    "shoal server --state /var/lib/shoal --oidc /etc/shoal/oidc.json": ("shoal server --state none --oidc missing.json", 4, _SERVER),
    "shoal policy show --team research": ("shoal policy show --team research --server http://127.0.0.1:1", 3, _SERVER),
    "shoal policy set policy.json --team research":
        ("shoal policy set policy.json --team research --server http://127.0.0.1:1", 3, _SERVER),
    "shoal policy remove --team research": ("shoal policy remove --team research --server http://127.0.0.1:1", 3, _SERVER),
    "shoal login https://ml1.example:7117,https://ml2.example:7117": ("shoal login https://ml1.example:7117,ftp://ml2.example", 2, _SERVER),
    "shoal logout": ("shoal logout", 4, _SERVER),
    "shoal logout https://ml.example:7117": ("shoal logout https://ml.example:7117", 4, _SERVER),
    "shoal submit graph.yaml": ("shoal submit graph.yaml", 2, _SERVER),
    "shoal submit grid.yaml": ("shoal submit grid.yaml", 2, _SERVER),
    "shoal submit train.yaml --set 'after=[{job: prepare-7f3a9c, when: succeeded}]'":
        ("shoal submit train.yaml --set 'after=[{job: prepare-7f3a9c, when: succeeded}]'", 2, _SERVER),
    "shoal show grid-1a2b3c": ("shoal jobs --groups", 0, _SERVER),
    "shoal stop grid-1a2b3c": ("shoal jobs --groups", 0, _SERVER),
    "shoal show tune-1c2d3e": ("shoal jobs --groups", 0, _SERVER),
    "shoal schedule nightly.yaml": ("shoal schedule nightly.yaml", 2, _SERVER),
    "shoal schedule nightly.yaml --set schedule.concurrency=replace --team research":
        ("shoal schedule nightly.yaml --set schedule.concurrency=replace --team research", 2, _SERVER),
    "shoal schedule --list": ("shoal schedule --list", 1, _SERVER),
    "shoal schedule --run nightly": ("shoal schedule --run nightly", 1, _SERVER),
    "shoal schedule --remove nightly --now": ("shoal schedule --remove nightly --now", 1, _SERVER),
    "shoal submit job.yaml": ("shoal submit job.yaml", 2, _SERVER),
    "shoal server --forward-logs forward.yaml": ("shoal server --help | grep -q -e --forward-logs", 0, _SERVER),
    "shoal server --webhook-allow 10.2.0.0/16 --webhook-allow 127.0.0.1": ("shoal server --help | grep -q -e --webhook-allow", 0, _SERVER),
    "shoal webhook set ops --url https://hooks.example.org/shoal": ("shoal webhook set --help | grep -q -e --url", 0, _SERVER),
    "shoal webhook set chat --format slack --url-file slack.url --events failed,succeeded":
        ("shoal webhook set --help | grep -q -e --url-file", 0, _SERVER),
    "shoal webhook list": ("shoal webhook list", 1, _SERVER),
    "shoal webhook remove ops": ("shoal webhook remove ops", 1, _SERVER),
    "shoal train logistic --data 's3://bucket/clicks/part-*.libsvm' --output s3://bucket/models/clicks":
        ("shoal train logistic --data 's3:///part-*.libsvm' --output clicks", 2, _STORE),
    "shoal train word2vec --data https://example.org/news.txt.gz --output vectors":
        ("shoal train word2vec --data https://a@b/news.txt.gz --output vectors", 2, _STORE),
    "shoal data ls 's3://bucket/news/part-*.txt'": ("shoal data ls 'news/*'", 0, _STORE),
    "shoal data schema s3://bucket/people.csv": ("shoal data schema people.csv", 0, _STORE),
    "shoal data copy s3://bucket/news/ news/": ("shoal data copy news/ copied/", 0, _STORE),
    "shoal catalog create database ads --team ads --location s3://bucket/ads/":
        ("shoal catalog create database --help | grep -q -e --location", 0, _CATALOG),
    "shoal catalog create table ads.clicks --source 's3://bucket/ads/part-*.csv'":
        ("shoal catalog create table --help | grep -q -e --source", 0, _CATALOG),
    "shoal catalog create table ads.clicks --source /data/ads/clicks.csv":
        ("shoal catalog create table --help | grep -q -e --credentials", 0, _CATALOG),
    "shoal catalog ls ads": ("shoal catalog ls ads", 1, _CATALOG),
    "shoal catalog show ads.clicks": ("shoal catalog show ads.clicks", 1, _CATALOG),
    "shoal catalog drop ads.clicks": ("shoal catalog drop ads.clicks", 1, _CATALOG),
    "shoal catalog grant ads.clicks --to team:research --columns label,age,city --rows \"city = 'Oslo' and age >= 18\" --expires 30d":
        ("shoal catalog grant --help | grep -q -e --rows", 0, _CATALOG),
    "shoal catalog grant ads.clicks --to team:research --columns age,city --rows \"city = 'Oslo'\" --expires 30d":
        ("shoal catalog grant --help | grep -q -e --expires", 0, _CATALOG),
    "shoal catalog grant ads.clicks --to team:research --columns age,city --rows \"age >= 18\"":
        ("shoal catalog grant --help | grep -q -e --columns", 0, _CATALOG),
    "shoal catalog revoke ads.clicks 5f0c11aa": ("shoal catalog revoke ads.clicks 5f0c11aa", 1, _CATALOG),
    "shoal catalog who-can ads.clicks --column email": ("shoal catalog who-can ads.clicks --column email", 1, _CATALOG),
    "shoal catalog mask ads.clicks city truncate:2": ("shoal catalog mask ads.clicks city truncate:2", 1, _CATALOG),
    "shoal catalog mask ads.clicks email hash --except team:legal":
        ("shoal catalog mask ads.clicks email hash --except team:legal", 1, _CATALOG),
    "shoal catalog tag ads.clicks email pii": ("shoal catalog tag ads.clicks email pii", 1, _CATALOG),
    "shoal catalog tag-policy ads pii hash --except team:legal":
        ("shoal catalog tag-policy ads pii hash --except team:legal", 1, _CATALOG),
    "shoal catalog tag-policy ads pii deny": ("shoal catalog tag-policy ads pii deny", 1, _CATALOG),
    "shoal data copy 'gate://train/*' part/": ("shoal data copy 'gate://train/*' part/", 1, _CATALOG),
    "shoal lineage clicks-1a2b3c": ("shoal lineage clicks-1a2b3c", 1, _CATALOG),
    "shoal lineage s3://bucket/models/clicks": ("shoal lineage s3://bucket/models/clicks", 1, _CATALOG),
    "shoal lineage --column ads.clicks.email": ("shoal lineage --column ads.clicks.email", 1, _CATALOG),
    "shoal submit job.yaml --server https://ml.example:7117 --team research":
        ("shoal submit job.yaml --server http://127.0.0.1:1 --team research", 3, _SERVER),
    "shoal submit job.yaml --set roles.worker.replicas=8 --engine kubernetes":
        ("shoal submit job.yaml --set roles.worker.replicas=8 --engine kubernetes", 2, _SERVER),
    "shoal submit job.yaml --dry-run": ("shoal submit --help | grep -q -e --dry-run", 0, _SERVER),
    "shoal queue": ("shoal queue --help", 0, _SERVER),
    "shoal queue --json": ("shoal queue --help | grep -q -e --json", 0, _SERVER),
    "shoal queue hold research": ("shoal queue hold --help", 0, _SERVER),
    "shoal queue drain research": ("shoal queue drain --help", 0, _SERVER),
    "shoal queue resume research": ("shoal queue resume --help", 0, _SERVER),
    "shoal queue reload": ("shoal queue reload --help", 0, _SERVER),
    "shoal logs -f $(shoal submit job.yaml)": ("shoal submit job.yaml", 2, _SERVER),

    "shoal logs mnist --role worker --index 3 --attempt 2": ("shoal logs mnist --role worker --index 0 --attempt 1", 0, _SMALL),
    "shoal logs mnist --role worker --index 3 --since 10m --until 09:30": ("shoal logs mnist --role worker --index 0 --since 10m", 0, _SMALL),
    "shoal logs --all-jobs --grep 'CUDA error' --since 24h -n 50": ("shoal logs --help | grep -q -e --all-jobs", 0, _SMALL),
    "shoal logs --all-jobs --team vision --grep 'loss=nan'": ("shoal logs --help | grep -q -e --team", 0, _SERVER),
    "shoal show word2vec-7f3a9c --curves": ("shoal show --help | grep -q -e --curves", 0, _NUMBERS),
    "shoal show word2vec-7f3a9c --metric memory_bytes": ("shoal show --help | grep -q -e --metric", 0, _NUMBERS),
    "shoal plot word2vec-7f3a9c -o curves.svg": ("shoal plot --help | grep -q -e --output", 0, _NUMBERS),
    "shoal plot mnist-1b6d2e mnist-7f3a9c --metric loss -o losses.svg": ("shoal plot --help | grep -q -e --metric", 0, _NUMBERS),
    "shoal plot mnist-7f3a9c -o - > curves.svg": ("shoal plot --help | grep -q -e --output", 0, _NUMBERS),

    "cmake --preset release": ("grep -q '\"name\": \"release\"' CMakePresets.json", 0, _RELEASE),
    "cmake --build --preset release": ("grep -q '\"name\": \"release\"' CMakePresets.json", 0, _RELEASE),
    "cmake --build build/release && cmake --install build/release --prefix /usr/local": ("grep -q 'install(' cmake/install.cmake", 0, _RELEASE),
    "cmake --install build/release --prefix /usr/local": ("grep -q 'install(' cmake/install.cmake", 0, _RELEASE),
    "install -m 755 build/release/shoal build/release/shoal-task /usr/local/bin":
        ("grep -rq shoal-task src/*/CMakeLists.txt CMakeLists.txt", 0, "writes outside the test's directory"),
    "ninja -C build/release python_wheel": ("grep -rq python_wheel python CMakeLists.txt", 0, _RELEASE),
    "ninja -C build/release shoal_python": ("grep -rq shoal_python python CMakeLists.txt", 0, _RELEASE),
    "script/bootstrap && cmake --preset release && ninja -C build/release shoal shoal_python": (CHECK_SCRIPT, 0, _RELEASE),
    "shoal doctor --clean": ("shoal doctor --help | grep -q -e --clean", 0, "removes what jobs of other tests have left"),
    "shoal doctor --json | jq '.findings[] | select(.verdict != \"ok\")'":
        ("shoal doctor --json > doctor.json || jq '.findings[] | select(.verdict != \"ok\")' doctor.json", 0,
         "ends with 1 where jobs of other tests have left something"),
    "shoal completion bash > /etc/bash_completion.d/shoal":
        ("shoal completion bash > completion && bash -n completion", 0, "writes outside the test's directory"),
    "source <(shoal completion zsh)": ("shoal completion zsh | grep -q compdef", 0, "needs zsh"),
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

# Commands of INSTEAD that documents_server_test.py runs as printed, in this order.
WITH_A_SERVER = [
    "shoal submit job.yaml",
    "shoal submit job.yaml --dry-run",
    "shoal logs -f $(shoal submit job.yaml)",
    "shoal logs --all-jobs --grep 'CUDA error' --since 24h -n 50",
    "shoal logs --all-jobs --team vision --grep 'loss=nan'",
    "shoal submit graph.yaml",
    "shoal submit train.yaml --set 'after=[{job: prepare-7f3a9c, when: succeeded}]'",
    "shoal submit grid.yaml",
    "shoal show grid-1a2b3c",
    "shoal stop grid-1a2b3c",
    "shoal schedule nightly.yaml",
    "shoal schedule --list",
    "shoal schedule --run nightly",
    "shoal schedule --remove nightly --now",
    "shoal schedule nightly.yaml --set schedule.concurrency=replace --team research",
    "shoal queue",
    "shoal queue --json",
    "shoal queue hold research",
    "shoal queue drain research",
    "shoal queue resume research",
    "shoal queue reload",
    "shoal webhook set ops --url https://hooks.example.org/shoal",
    "shoal webhook set chat --format slack --url-file slack.url --events failed,succeeded",
    "shoal webhook list",
    "shoal webhook remove ops",
    "shoal policy set policy.json --team research",
    "shoal policy show --team research",
    "shoal policy remove --team research",
    "shoal logout",
]
