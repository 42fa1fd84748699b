#!/usr/bin/env python3
"""make_image.py OUT.tar NAME:TAG busybox | pause | FILE=TARGET…: an image as an archive (`ctr images import`), without registry
or daemon. busybox: a shell and what scripts need, with the files behind it; pause: the same, sleeping; FILE=TARGET: these files alone."""
import hashlib
import io
import json
import shutil
import sys
import tarfile

APPLETS = ('sh ls sleep cat echo env ps kill dd hostname wget nc ip id true false date seq head tail yes mkdir tr awk sed grep '
           'test touch expr wc stty httpd nslookup').split()


def layer(parts):
    out = io.BytesIO()
    tar = tarfile.open(fileobj=out, mode='w')

    def directory(name, mode=0o755):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tar.addfile(entry)

    def file(name, path=None, data=b'', mode=0o644):
        data = data if path is None else open(path, 'rb').read()
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), mode
        tar.addfile(entry, io.BytesIO(data))

    if parts[0] in ('busybox', 'pause'):
        for name in ('bin', 'etc', 'proc', 'sys', 'dev', 'root', 'work'):
            directory(name)
        directory('tmp', 0o1777)
        for name in ('lib', 'lib64'):  # for who mounts a /usr with programs that need them
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, 'usr/' + name
            tar.addfile(entry)
        file('bin/busybox', shutil.which('busybox'), mode=0o755)
        file('etc/passwd', data=b'root:x:0:0:root:/root:/bin/sh\n')
        for applet in APPLETS:
            entry = tarfile.TarInfo('bin/' + applet)
            entry.type, entry.linkname = tarfile.SYMTYPE, 'busybox'
            tar.addfile(entry)
    else:
        directory('tmp', 0o1777)
    for part in parts:
        if '=' in part:
            source, target = part.split('=', 1)
            file(target.lstrip('/'), source, mode=0o755)
    tar.close()
    return out.getvalue()


def main():
    out, name, parts = sys.argv[1], sys.argv[2], sys.argv[3:]
    bytes_ = layer(parts)
    digest = hashlib.sha256(bytes_).hexdigest()
    command = ['/bin/sleep', '2147483647'] if parts[0] == 'pause' else ['/bin/sh']
    config = json.dumps({'architecture': 'amd64', 'os': 'linux', 'config': {'Env': ['PATH=/bin'], 'Cmd': command},
                         'rootfs': {'type': 'layers', 'diff_ids': ['sha256:' + digest]},
                         'created': '2020-01-01T00:00:00Z',
                         'history': [{'created': '2020-01-01T00:00:00Z', 'created_by': 'make_image'}]}).encode()
    config_digest = hashlib.sha256(config).hexdigest()
    manifest = json.dumps([{'Config': config_digest + '.json', 'RepoTags': [name],
                            'Layers': [digest + '/layer.tar']}]).encode()
    tar = tarfile.open(out, 'w')
    for path, data in ((digest + '/layer.tar', bytes_), (config_digest + '.json', config), ('manifest.json', manifest)):
        entry = tarfile.TarInfo(path)
        entry.size, entry.mode = len(data), 0o644
        tar.addfile(entry, io.BytesIO(data))
    tar.close()


main()
