"""Which room may include what: the order of the rooms, CMake's DEPS, the owners of third-party headers."""
import os
import re

import cpp
from files import Finding, is_cpp, is_test, read, table

# Headers with a folder in their name that belong to the system, not to a third party.
_SYSTEM = ("sys/", "linux/", "net/", "netinet/", "arpa/", "asm/", "bits/")


def _ranks(root):
    return {room: rank for rank, (_, rooms) in enumerate(table(root, "rooms.txt")) for room in rooms}


def _room_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]


def _own_header(path):
    return re.sub(r"(?:_test|_bench|_fuzz)?\.cc$", ".h", path[len("src/"):])


def _check_own(root, path, listed):
    """x.cc includes x.h before everything else, so that every header is known to stand on its own."""
    own = _own_header(path)
    if is_test(path) or not os.path.exists(os.path.join(root, "src", own)) or not listed:
        return []
    line, first, _ = listed[0]
    if first == own or any(name == "hwy/foreach_target.h" for _, name, _ in listed):
        return []
    return [Finding("own-header", path, line, f"the first include is {first}, expected its own header \"{own}\"")]


def _check_owner(path, line, name, owners):
    room = _room_of(path)
    for prefix, where, rooms in owners:
        if not name.startswith(prefix):
            continue
        if where == "cc" and not path.endswith(".cc") and not is_test(path):
            return [Finding("owner", path, line, f"<{name}> may be included in .cc files only, behind a header of ours")]
        allowed = "*" in rooms or room in rooms or ("tests" in rooms and is_test(path))
        if allowed:
            return []
        return [Finding("owner", path, line, f"<{name}> belongs to {' '.join(rooms)} (tools/lint/owners.txt)")]
    if "/" in name and not name.startswith(_SYSTEM):
        return [Finding("owner", path, line, f"<{name}> has no owner in tools/lint/owners.txt")]
    return []


def _dependencies(root, room):
    """The DEPS of src/<room>/CMakeLists.txt, or None when that is not one shoal_room()."""
    path = os.path.join(root, "src", room, "CMakeLists.txt")
    if not os.path.exists(path):
        return None
    text = re.sub(r"#[^\n]*", "", read(root, f"src/{room}/CMakeLists.txt"))
    call = re.search(rf"shoal_room\(\s*{room}\b([^)]*)\)", text)
    if not call:
        return None
    words = call.group(1).split()
    if "DEPS" not in words:
        return []
    after = words[words.index("DEPS") + 1:]
    return after[:after.index("LIBS")] if "LIBS" in after else after


def _check_dependencies(root, ranks, used):
    findings = []
    for room in sorted(used):
        declared = _dependencies(root, room)
        if declared is None:
            continue
        path = f"src/{room}/CMakeLists.txt"
        for dep in declared:
            if dep not in ranks or ranks[dep] >= ranks[room]:
                findings.append(Finding("rooms", path, 1, f"DEPS names {dep}, which is not of an earlier rank"))
            elif dep not in used[room]:
                findings.append(Finding("deps", path, 1, f"DEPS names {dep}, but no file of {room} includes it"))
        for dep in sorted(used[room] - set(declared)):
            findings.append(Finding("deps", path, 1, f"{room} includes {dep}/, but DEPS does not name it"))
    return findings


def check(root, paths):
    """All findings about includes among `paths`."""
    ranks = _ranks(root)
    owners = [(row[0], row[1], row[2:]) for _, row in table(root, "owners.txt")]
    findings, used = [], {}
    for path in filter(is_cpp, paths):
        room = _room_of(path)
        listed = cpp.includes(read(root, path))
        inside = path.startswith("src/")
        if inside:
            used.setdefault(room, set())
            if room not in ranks:
                findings.append(Finding("rooms", path, 1, f"src/{room} is not in tools/lint/rooms.txt"))
                continue
            if path.endswith(".cc"):
                findings += _check_own(root, path, listed)
        for line, name, quoted in listed:
            target = name.split("/")[0]
            if quoted and target in ranks:
                if inside and target != room:
                    used[room].add(target)
                    if ranks[target] >= ranks[room]:
                        findings.append(Finding("rooms", path, line, f"{room} may not include {target}/: it is not of "
                                                                     "an earlier rank (tools/lint/rooms.txt)"))
            elif quoted and not inside and os.path.exists(os.path.join(root, "tests", name)):
                continue
            elif quoted and inside and not any(name.startswith(prefix) for prefix, _, _ in owners):
                findings.append(Finding("rooms", path, line, f"\"{name}\" should be the full path below src/"))
            else:
                findings += _check_owner(path, line, name, owners)
        if path.endswith(".h") and "#pragma once" not in read(root, path) and "foreach_target" not in read(root, path) \
                and "HWY_TARGET_TOGGLE" not in read(root, path):
            findings.append(Finding("pragma-once", path, 1, "a header begins with #pragma once"))
    return findings + _check_dependencies(root, ranks, used)
