"""Where each documented command is run as printed: the suite that takes it. A command that no rule names is run by the tests of its page
or its help text (documents_pages_test.py, documents_readme_test.py, documents_help_*_test.py)."""
import re

import documented

# The suite, and the beginning of its commands (a regular expression); the first that fits decides.
RULES = (
    # documents_catalog_test.py, with a server, its catalogue and an S3 server
    ("catalog", r"shoal (catalog|lineage) |shoal data copy 'gate:"),
    # tests/cluster/docker_test.py, slurm_test.py and kubernetes_test.py, on real clusters
    ("docker", r"shoal (run|train) .*--engine docker|docker "),
    ("slurm", r"shoal run .*--engine slurm"),
    # tests/cluster/operator_test.py, likewise
    ("operator", r"shoal server --operator|kubectl apply --server-side|kubectl -n NAMESPACE patch shoaljob|helm install .*shoal-server"),
    ("kubernetes", r"shoal run .*--engine kubernetes|helm |kubectl -n"),
    # build_commands.py, in the checkout; a stage of script/ci
    ("build", r"cmake |ninja |script/bootstrap &&|script/package deb"),
    # documents_checkout_slow_test.py
    ("checkout", r"script/bench |script/lint --fix"),
    # documents_text_slow_test.py
    ("text", r"bible "),
    # documents_frameworks_test.py, each where its framework is installed
    ("frameworks", r"(build/release/)?shoal run examples/(mpi|pytorch|embedding)/"),
    # documents_marathon_test.py, with the doubles of Marathon and Metronome
    ("marathon", r"shoal (run|schedule) .*--engine marathon|dig "),
    # documents_stores_test.py, with an S3 server and a web server
    ("stores", r"shoal .*(s3://|https://example\.org)"),
    # documents_machine_test.py, on a machine of its own
    ("machine", r"install |.*> /etc/|source .* zsh|shoal doctor --clean"),
    # documents_server_test.py, likewise
    ("server", r"shoal (server|login|logout|submit|schedule|policy|queue|webhook|open)( |$)|shoal (show|stop) (grid|tune)-"
               r"|shoal logs (--all-jobs|-f \$\(shoal submit)"),
)


# Suites in this directory, which script/test runs.
BESIDE = ("catalog", "frameworks", "marathon", "stores", "machine", "server")


def of(text):
    """The suite of a command; empty: the tests of its page."""
    return next((suite for suite, beginning in RULES if re.match(beginning, text)), "")


def commands(root, box, suite):
    """The commands of a suite, page by page and then the help texts, with those that are printed twice: [(page, [commands])]."""
    found = []
    pages = {page: documented.of_page(root, page) for page in documented.pages(root)}
    for command in box.examples(box.subcommands()):
        pages.setdefault(command.page, []).append(command)
    for page, of_page in pages.items():
        chosen = [command for command in of_page if of(command.text) == suite]
        if chosen:
            found.append((page, chosen))
    return found
