#!/usr/bin/env python3
"""kube_dns.py ADDRESS KUBECONFIG: answers A queries for pod names below headless services, as a cluster's DNS does.

Follows the cluster's endpoints (kubectl get --watch), so that an answer is as fresh as the server's word. Used by kubernetes.sh,
whose cluster has no DNS of its own."""
import json
import socket
import struct
import subprocess
import sys
import threading
import time

TTL = 1
tables = {}  # (namespace, service): {labels: [address]}


def read(item):
    """What is said of one Endpoints object."""
    service, table = item['metadata']['name'], {}
    for subset in item.get('subsets') or []:
        for address in (subset.get('addresses') or []) + (subset.get('notReadyAddresses') or []):
            table.setdefault((service,), []).append(address['ip'])
            if 'hostname' in address:
                table.setdefault((address['hostname'], service), []).append(address['ip'])
    return (item['metadata']['namespace'], service), table


def follow():
    decoder = json.JSONDecoder()
    while True:
        watch = subprocess.Popen(['kubectl', '--kubeconfig', sys.argv[2], 'get', 'endpoints', '-A', '--watch', '-o', 'json', '--output-watch-events'],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        text = ''
        while block := watch.stdout.read1(1 << 16):
            text += block.decode()
            while text := text.lstrip():
                try:
                    event, end = decoder.raw_decode(text)
                except ValueError:  # not all of it yet
                    break
                text = text[end:]
                if event['type'] == 'ERROR':  # the watch has become too old: it is begun again
                    watch.terminate()
                    continue
                key, table = read(event['object'])
                tables[key] = table if event['type'] != 'DELETED' else {}
        watch.wait()
        time.sleep(0.5)  # poll: the server is away; what was known holds


def lookup(labels):
    labels = [label.lower() for label in labels]
    if labels[-3:] != ['svc', 'cluster', 'local'] or len(labels) not in (5, 6):
        return None
    return tables.get((labels[-4], labels[-5]), {}).get(tuple(labels[:-4]))


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
    threading.Thread(target=follow, daemon=True).start()
    door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    door.bind((sys.argv[1], 53))
    while True:
        packet, peer = door.recvfrom(4096)
        try:
            door.sendto(answer(packet), peer)
        except Exception as error:  # a question that is none, an API server that is away
            print(peer, error, file=sys.stderr, flush=True)


main()
