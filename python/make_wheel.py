"""make_wheel.py [options] PACKAGE VERSION DIST: packs the built package into DIST/NAME-VERSION-….whl (PEP 427).

  --name NAME        of the distribution; otherwise shoal-ps, which has no commands
  --python TAG       which Python the module is for, as cp39; otherwise the one that runs this
  --platform TAG     otherwise linux_ARCH: the module then needs the libraries of the system that it was built on
  --script FILE      a program that pip puts beside the interpreter; may be repeated
  --module FILE      a module beside the package; may be repeated

Run by `ninja python_wheel` and script/package. Standard library only: a wheel is a zip with three files of metadata.
"""
import argparse
import base64
import hashlib
import os
import platform
import sys
import zipfile

METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: Apache-2.0
Requires-Python: >={python}
Requires-Dist: numpy
"""
SUMMARIES = {
    "shoal-ps": "Shoal from Python: the parameter server for numpy, PyTorch and TensorFlow, and the client of a server's jobs",
    "shoal": "Parameter server and runner of distributed training jobs: the command shoal, and the modules shoal and shoal.ps",
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", choices=sorted(SUMMARIES), default="shoal-ps")
    parser.add_argument("--python", default=f"cp{sys.version_info.major}{sys.version_info.minor}")
    parser.add_argument("--platform", default=f"linux_{platform.machine()}")
    parser.add_argument("--script", action="append", default=[])
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("package")
    parser.add_argument("version")
    parser.add_argument("dist")
    return parser.parse_args()


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def read(path):
    with open(path, "rb") as f:
        return f.read()


def contents(given, stem):
    """What the wheel holds but for its list of files: from path to bytes."""
    files = {}
    for folder, _, names in os.walk(given.package):
        for name in sorted(names):
            if name.endswith((".py", ".pyi", ".so", "py.typed")):
                path = os.path.join(folder, name)
                files[os.path.join("shoal", os.path.relpath(path, given.package))] = read(path)
    for module in given.module:
        files[os.path.basename(module)] = read(module)
    for script in given.script:
        files[f"{stem}.data/scripts/{os.path.basename(script)}"] = read(script)
    # Jupyter finds kernels below share/jupyter of the interpreter's prefix.
    kernel = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel", "kernel.json")
    files[f"{stem}.data/data/share/jupyter/kernels/shoal-sql/kernel.json"] = read(kernel)
    tag = f"{given.python}-{given.python}-{given.platform}"
    files[f"{stem}.dist-info/METADATA"] = METADATA.format(
        name=given.name, version=given.version, summary=SUMMARIES[given.name],
        python=f"{given.python[2]}.{given.python[3:]}").encode()
    files[f"{stem}.dist-info/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: shoal\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    return files, tag


def main():
    given = arguments()
    stem = f"{given.name.replace('-', '_')}-{given.version}"
    files, tag = contents(given, stem)
    record = f"{stem}.dist-info/RECORD"
    files[record] = ("".join(record_line(name, data) for name, data in files.items()) + f"{record},,\n").encode()
    os.makedirs(given.dist, exist_ok=True)
    wheel = os.path.join(given.dist, f"{stem}-{tag}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            out.writestr(entry, data, zipfile.ZIP_DEFLATED)
    print(wheel)


if __name__ == "__main__":
    main()
