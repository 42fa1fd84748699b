"""package_test.py DIST VERSION [PYTHON…]: installs every package of DIST where no compiler is, and trains word vectors there.

Run by script/package test. The .deb, the archive and the wheel of Debian's Python go into an empty Debian 12 each, made by
mmdebstrap once (~/.cache/shoal) and entered by chroot, which needs root; the image's own root file system is entered likewise. The wheels go
into virtual environments of the Pythons that are named. Ends with "package: N passed, N failed, N skipped".
"""
import contextlib
import glob
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "cluster"))
import shoal_image  # noqa: E402

TEXT = os.path.join(ROOT, "examples", "text", "kjv.txt.zst")
# From the installed package to vectors: processor time, which other programs do not lengthen, of 10 s on 2 cores.
MOST_SECONDS = 20
MODULE = """
import shoal.ps
with shoal.ps.Server(token='t') as server:
    client = shoal.ps.connect([server.address], token='t')
    table = client.table('weights', dim=4, rows=100, optimizer='sgd', lr=0.5)
    import array
    keys = array.array('q', [7, 42])
    rows = table.push_pull(keys, memoryview(array.array('f', [1.0] * 8)).cast('B').cast('f', (2, 4)))
    assert rows[0][0] == -0.5, rows
"""


class Skipped(Exception):
    pass


def check(condition, *said):
    if not condition:
        raise AssertionError(" ".join(str(word) for word in said))


def run(command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    check(done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def unpacked(tar):
    """A root file system to enter; yields run(command…), which runs in it."""
    @contextlib.contextmanager
    def entered():
        if os.getuid() != 0:
            raise Skipped("entering a root file system needs root")
        with tempfile.TemporaryDirectory(prefix="shoal-package-root.") as place:
            os.chmod(place, 0o755)
            run(["tar", "-C", place, "-xf", tar])
            enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc",
                     'mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/dev"; for n in null zero urandom; do '
                     'touch "$0/dev/$n"; mount --bind "/dev/$n" "$0/dev/$n"; done; mkdir "$0/dev/shm"; exec chroot "$@"', place]

            def inside(*command, user=None):
                return run([*enter, *(["--userspec", user] if user else []), place, *command],
                           env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"})

            inside.place = place
            yield inside
    return entered()


def empty_debian():
    if not shoal_image.can_be_made():
        raise Skipped("there is no mmdebstrap here, which makes an empty Debian")
    return unpacked(shoal_image.base())


def train(inside, command, folder, user=None):
    """Trains vectors of the text, and asks for neighbours; the processor time that both took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    options = {"user": user} if user else {}
    inside(command, "train", "word2vec", "--data", f"{folder}/kjv.txt.zst", "--output", f"{folder}/vectors", "--epochs", "2", **options)
    neighbours = inside(command, "nearest", f"{folder}/vectors", "silver", **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    check("gold" in neighbours, "silver's neighbours are", neighbours)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"  trained and asked: {time.monotonic() - began:.1f} s, {used:.1f} s of processor time", flush=True)
    check(used <= MOST_SECONDS, f"took {used:.1f} s of processor time, allowed are {MOST_SECONDS}")


def check_version(inside, command, version):
    said = inside(command, "--version")
    check(f"shoal {version}\n" in said, "--version says", said, "expected", version)
    check("instruction sets" in said and "x86-64" in said, "--version says", said)
    check(json.loads(inside(command, "version", "--json"))["version"] == version)


def no_compiler(place):
    for name in ("cc", "c++", "gcc", "g++", "clang"):
        check(not os.path.lexists(os.path.join(place, "usr", "bin", name)), f"there is {name} in {place}")


def test_deb(dist, version):
    with empty_debian() as inside:
        no_compiler(inside.place)
        shutil.copy(only(dist, "shoal_*.deb"), os.path.join(inside.place, "shoal.deb"))
        inside("dpkg", "--install", "/shoal.deb")
        check_version(inside, "shoal", version)
        shutil.copy(TEXT, os.path.join(inside.place, "tmp"))
        train(inside, "shoal", "/tmp")
        inside("bash", "-n", "/usr/share/bash-completion/completions/shoal")
        inside("shoal-task", "--help")
        inside("dpkg", "--purge", "shoal")
        check(not os.path.exists(os.path.join(inside.place, "usr", "bin", "shoal")), "shoal is left after its removal")


def test_tar(dist, version):
    with empty_debian() as inside:
        # Another OpenSSL, or none: the archive has its own.
        for library in glob.glob(os.path.join(inside.place, "usr", "lib", "*", "libssl.so*")):
            os.remove(library)
        with tempfile.TemporaryDirectory() as place:
            run(["tar", "-C", place, "--zstd", "-xf", only(dist, "shoal-*-linux-x86_64.tar.zst")])
            shutil.move(only(place, "shoal-*"), os.path.join(inside.place, "opt", "anywhere"))
        shutil.copy(TEXT, os.path.join(inside.place, "tmp"))
        check_version(inside, "/opt/anywhere/bin/shoal", version)
        train(inside, "/opt/anywhere/bin/shoal", "/tmp")
        os.rename(os.path.join(inside.place, "opt", "anywhere"), os.path.join(inside.place, "srv", "elsewhere"))
        inside("/srv/elsewhere/bin/shoal", "nearest", "/tmp/vectors", "sea")


def test_image(dist, version):
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(only(dist, "shoal-*-image.tar")) as tar:
            tar.extractall(place)  # noqa: S202
        with open(os.path.join(place, "manifest.json"), encoding="utf-8") as f:
            manifest = json.load(f)[0]
        with open(os.path.join(place, manifest["Config"]), encoding="utf-8") as f:
            config = json.load(f)["config"]
        with unpacked(os.path.join(place, manifest["Layers"][0])) as inside:
            no_compiler(inside.place)
            entry = config["Entrypoint"][0]
            check_version(inside, entry, version)
            shutil.copy(TEXT, os.path.join(inside.place, "state"))
            train(inside, entry, "/state", user=config["User"])


def test_wheel(dist, version, interpreter):
    tag = subprocess.check_output([interpreter, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"], text=True).strip()
    wheel = only(dist, f"shoal-*-{tag}-{tag}-*.whl")
    with tempfile.TemporaryDirectory(prefix="shoal-package-venv.") as place:
        run([interpreter, "-m", "venv", "--system-site-packages", place])
        bin_folder = os.path.join(place, "bin")
        alone = {"PATH": bin_folder, "HOME": place, "LANG": "C.UTF-8"}

        def inside(*command):
            return run([os.path.join(bin_folder, command[0]), *command[1:]], env=alone, cwd=place)

        inside("python", "-m", "pip", "install", "--no-index", "--quiet", "--disable-pip-version-check", wheel)
        check_version(inside, "shoal", version)
        inside("python", "-c", MODULE)
        shutil.copy(TEXT, place)
        train(inside, "shoal", place)
        inside("shoal-task", "--help")
        inside("python", "-m", "pip", "uninstall", "--yes", "--quiet", "shoal")
        check(not os.path.exists(os.path.join(bin_folder, "shoal")), "shoal is left after its removal")


def only(folder, pattern):
    found = [path for path in glob.glob(os.path.join(folder, pattern)) if "debug" not in path]
    if not found:
        raise Skipped(f"there is no {pattern} in {folder}")
    check(len(found) == 1, "got", found, "expected one")
    return found[0]


def main():
    dist, version, pythons = sys.argv[1], sys.argv[2], sys.argv[3:]
    cases = [("deb", test_deb, ()), ("tar", test_tar, ()), ("image", test_image, ())]
    cases += [(f"wheel, {interpreter}", test_wheel, (interpreter,)) for interpreter in pythons]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, case, arguments in cases:
        print(f"{name}:", flush=True)
        try:
            case(os.path.abspath(dist), version, *arguments)
            outcome = "passed"
        except Skipped as reason:
            outcome = "skipped"
            print(f"  {reason}", flush=True)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            outcome = "failed"
            print(f"  {error}", flush=True)
        counts[outcome] += 1
        print(f"  {outcome}", flush=True)
    print("package: " + ", ".join(f"{number} {outcome}" for outcome, number in counts.items()))
    return bool(counts["failed"])


if __name__ == "__main__":
    sys.exit(main())
