"""make_image.py PACKAGE.deb OUT.tar NAME:TAG: a container image of Debian 12 with that package, made without a daemon.

Called by script/package, as root. The archive is both an OCI layout and what `docker save` writes, so docker load, podman load
and `ctr images import` read it. As docker/Dockerfile has it: an ordinary user, SHOAL_HOME=/state, the command as entry point.
"""
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "cluster"))
from shoal_image import base  # noqa: E402

# No command reads these.
SUPERFLUOUS = ("usr/share/doc/*", "usr/share/man/*", "usr/share/info/*", "usr/share/locale/*", "var/lib/apt/lists/*",
               "var/cache/apt/*", "var/cache/debconf/*", "var/log/*", "dev/*", "tmp/*")


def root_file_system(package, place):
    subprocess.run(["tar", "-C", place, "-xf", base()], check=True)
    shutil.copy(package, os.path.join(place, "shoal.deb"))
    subprocess.run(["chroot", place, "dpkg", "--install", "--force-unsafe-io", "/shoal.deb"], check=True, stdout=subprocess.DEVNULL)
    os.remove(os.path.join(place, "shoal.deb"))
    subprocess.run(["chroot", place, "useradd", "--uid", "10001", "--home-dir", "/state", "--create-home", "shoal"], check=True)


def layer(place):
    """The root file system as a tar of a fixed order and time."""
    excluded = [f"--exclude=./{pattern}" for pattern in SUPERFLUOUS]
    return subprocess.run(["tar", "-C", place, "--sort=name", "--numeric-owner", "--mtime=@0", *excluded, "-cf", "-", "."], check=True,
                          stdout=subprocess.PIPE).stdout


def digest(data):
    return hashlib.sha256(data).hexdigest()


def archive(tar_of_layer, out, name):
    packed = gzip.compress(tar_of_layer, 6, mtime=0)
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "created": "1970-01-01T00:00:00Z",
        "config": {"User": "10001:10001", "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SHOAL_HOME=/state"],
                   "Entrypoint": ["shoal"], "WorkingDir": "/state", "Volumes": {"/state": {}}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(tar_of_layer)]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "script/package"}]}).encode()

    def blob(data, media_type):
        return {"mediaType": "application/vnd.oci.image." + media_type, "digest": "sha256:" + digest(data), "size": len(data)}

    manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                           "config": blob(config, "config.v1+json"), "layers": [blob(packed, "layer.v1.tar+gzip")]}).encode()
    index = {"schemaVersion": 2, "manifests": [{**blob(manifest, "manifest.v1+json"), "annotations": {
        "org.opencontainers.image.ref.name": name.partition(":")[2], "io.containerd.image.name": "docker.io/library/" + name}}]}
    blobs = {f"blobs/sha256/{digest(data)}": data for data in (packed, config, manifest)}
    docker = [{"Config": f"blobs/sha256/{digest(config)}", "RepoTags": [name], "Layers": [f"blobs/sha256/{digest(packed)}"]}]
    with tarfile.open(out, "w") as tar:
        for path, data in {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode(),
                           "manifest.json": json.dumps(docker).encode(), **blobs}.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))


def main():
    package, out, name = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="shoal-image.") as place:
        os.chmod(place, 0o755)
        root_file_system(package, place)
        archive(layer(place), out, name)


if __name__ == "__main__":
    main()
