"""A machine of a test's own, for commands that name places and hosts: private directories such as /var/lib/shoal, a network with every port
free, and the hosts of the documents, all of which end with the process. It needs root, or a kernel that lets users make namespaces."""
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import sys

# Hosts that documents name; every address of 127.0.0.0/8 is this machine.
HOSTS = {"localhost": "127.0.0.1", "ml.example": "127.0.0.1", "ml1.example": "127.0.0.1", "ml2.example": "127.0.0.2", "db": "127.0.0.1",
         "leader.mesos": "127.0.0.1", "example.org": "127.0.0.1"}
# Directories that documents write to, empty at the beginning. What else is in the directory around is there as it is outside.
PLACES = ("/var/lib/shoal", "/srv/shoal", "/etc/shoal", "/backup", "/shared", "/data")
# Directories to which documents add, and files that are others here.
ADDED_TO = ("/usr/local/bin", "/usr/local/include", "/usr/local/lib", "/usr/local/lib/cmake", "/usr/local/share", "/etc/bash_completion.d")
FILES = ("/etc/hosts", "/etc/resolv.conf")
_OWN = PLACES + ADDED_TO + FILES

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_libc = ctypes.CDLL(None, use_errno=True)


def _call(function, *arguments):
    if function(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _mount(source, target, kind, flags, options=None):
    _call(_libc.mount, source.encode(), target.encode(), kind and kind.encode(), flags, options)


def _bind(root, place):
    """What is at a place, in the new root too."""
    if os.path.islink(place):
        os.symlink(os.readlink(place), root + place)
        return
    if os.path.isdir(place):
        os.mkdir(root + place)
    else:
        with open(root + place, "wb"):
            pass
    _mount(place, root + place, None, _MS_BIND | _MS_REC)


def _fill(root, folder):
    """A directory around PLACES: its other entries are those of this machine."""
    for name in sorted(os.listdir(folder) if os.path.isdir(folder) else ()):
        place = os.path.join(folder, name)
        if place in PLACES + FILES:
            continue
        if place == root:
            os.mkdir(root + place)
        elif place in ADDED_TO or any(one.startswith(place + "/") for one in _OWN):
            os.mkdir(root + place)
            _fill(root, place)
        else:
            _bind(root, place)


def _loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        flags = struct.unpack("16sh", fcntl.ioctl(s, _SIOCGIFFLAGS, struct.pack("16sh", b"lo", 0)))[1]
        fcntl.ioctl(s, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | _IFF_UP))


def enter(network=True):
    """Moves this process, which has no threads yet, to such a machine; the reason if that cannot be done, else nothing. Without `network`
    the network and its names stay those of the machine."""
    here, user, group = os.getcwd(), os.geteuid(), os.getegid()
    try:
        _call(_libc.unshare, _CLONE_NEWNS | (_CLONE_NEWNET if network else 0) | (_CLONE_NEWUSER if user != 0 else 0))
    except OSError as error:
        return f"namespaces cannot be made here: {error.strerror}"
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    root = next(place for place in ("/mnt", "/media", "/srv", "/opt") if os.path.isdir(place))  # hidden behind the new root, and in it
    _mount("none", root, "tmpfs", 0, b"mode=755")
    _fill(root, "/")
    clear(root)
    if network:
        _loopback()
        with open(root + "/etc/hosts", "w", encoding="ascii") as hosts:
            hosts.writelines(f"{address} {name}\n" for name, address in HOSTS.items())
        with open(root + "/etc/resolv.conf", "w", encoding="ascii") as resolvers:
            resolvers.write("nameserver 127.0.0.1\n")
    else:
        for file in FILES:
            shutil.copyfile(file, root + file)
    os.chroot(root)
    os.chdir(here)
    return ""


def enter_or_skip():
    """enter, at a test program's beginning; ends it as skipped where that is not possible."""
    reason = enter()
    if reason:
        print("skipped:", reason)
        sys.exit(77)


def hide(*places):
    """Makes these directories, of the kernel and of all its processes, empty ones of this machine."""
    for place in places:
        _mount("none", place, "tmpfs", 0)


def clear(root="", places=PLACES):
    """Empties these directories."""
    for place in places:
        shutil.rmtree(root + place, ignore_errors=True)
        os.makedirs(root + place)
    for place in ADDED_TO:
        os.makedirs(root + place, exist_ok=True)
