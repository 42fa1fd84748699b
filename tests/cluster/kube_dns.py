#!/usr/bin/env python3
"""kube_dns.py ADDRESS KUBECONFIG: answers A questions for pods' names below headless services, as a cluster's DNS does.

Asks the API server for each name that it does not know (kubectl get endpoints), keeps answers for a second. Used by
kubernetes.sh, whose cluster has no DNS of its own."""
import json
import socket
import struct
import subprocess
import sys
import time

TTL = 1
cache = {}


def endpoints(namespace):
    when, table = cache.get(namespace, (0, {}))
    if time.monotonic() - when < TTL:
        return table
    table = {}
    text = subprocess.run(['kubectl', '--kubeconfig', sys.argv[2], '-n', namespace, 'get', 'endpoints', '-o', 'json'],
                          capture_output=True, timeout=5).stdout
    for item in json.loads(text or '{"items": []}')['items']:
        service = item['metadata']['name']
        for subset in item.get('subsets') or []:
            for address in (subset.get('addresses') or []) + (subset.get('notReadyAddresses') or []):
                table.setdefault((service,), []).append(address['ip'])
                if 'hostname' in address:
                    table.setdefault((address['hostname'], service), []).append(address['ip'])
    cache[namespace] = (time.monotonic(), table)
    return table


def lookup(labels):
    labels = [label.lower() for label in labels]
    if labels[-3:] != ['svc', 'cluster', 'local'] or len(labels) not in (5, 6):
        return None
    return endpoints(labels[-4]).get(tuple(labels[:-4]))


def answer(packet):
    ident, _, questions = struct.unpack('>HHH', packet[:6])
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]].decode())
        at += 1 + packet[at]
    kind = struct.unpack('>H', packet[at + 1:at + 3])[0]
    question = packet[12:at + 5]
    found = lookup(labels)
    addresses = found if found and kind == 1 else []
    code = 0 if found else 3
    reply = struct.pack('>HHHHHH', ident, 0x8580 | code, 1, len(addresses), 0, 0) + question
    for address in addresses:
        reply += struct.pack('>HHHIH', 0xc00c, 1, 1, TTL, 4) + socket.inet_aton(address)
    return reply


def main():
    door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    door.bind((sys.argv[1], 53))
    while True:
        packet, peer = door.recvfrom(4096)
        try:
            door.sendto(answer(packet), peer)
        except Exception as error:  # a question that is none, an API server that is away
            print(peer, error, file=sys.stderr, flush=True)


main()
