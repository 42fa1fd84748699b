"""make_wheel.py PACKAGE VERSION DIST: packs the built package into DIST/shoal_ps-VERSION-….whl (PEP 427).

Run by `ninja python_wheel`. Standard library only: a wheel is a zip with three files of metadata. The module needs the
system libraries of the Debian release that it was built on, so the wheel is tagged linux_ARCH, not manylinux.
"""
import base64
import hashlib
import os
import platform
import sys
import zipfile

METADATA = """Metadata-Version: 2.1
Name: shoal-ps
Version: {version}
Summary: Shoal's parameter server: tables of float rows on servers, for numpy, PyTorch and TensorFlow
License: Apache-2.0
Requires-Python: >={python}
"""


def tags():
    interpreter = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{interpreter}-{interpreter}-linux_{platform.machine()}"


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main():
    package, version, dist = sys.argv[1:4]
    files = {}
    for folder, _, names in os.walk(package):
        for name in sorted(names):
            if name.endswith((".py", ".pyi", ".so", "py.typed")):
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    files[os.path.join("shoal", os.path.relpath(path, package))] = f.read()
    info = f"shoal_ps-{version}.dist-info"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    files[f"{info}/METADATA"] = METADATA.format(version=version, python=python).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: shoal\nRoot-Is-Purelib: false\nTag: {tags()}\n".encode()
    record = "".join(record_line(name, data) for name, data in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    os.makedirs(dist, exist_ok=True)
    wheel = os.path.join(dist, f"shoal_ps-{version}-{tags()}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            out.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    print(wheel)


if __name__ == "__main__":
    main()
