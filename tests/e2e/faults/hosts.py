"""Hosts for jobs of one machine: network namespaces with a link to a switch each, and a double of Marathon whose agents they
are. Needs root. As a program: hosts.py NAMESPACE ADDRESS …: the double, in its own network; prints its URL, reads lines
"AGENT lost" and "AGENT back", and ends with its standard input."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 4


def ip(*lines, namespace=None):
    """Runs lines of ip(8), in a namespace."""
    command = ["ip", *(["-n", namespace] if namespace else []), "-batch", "-"]
    subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True, stdout=subprocess.DEVNULL)


class Hosts:
    """The switch's namespace, where `shoal run` is started as well, and COUNT hosts."""

    def __init__(self, mark):
        self.switch = f"shoal-{mark}-s"
        self.names = [f"shoal-{mark}-{i}" for i in range(COUNT)]
        self.enter = f"nsenter --net=/run/netns/{self.switch}"
        self.double = None
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self):
        ip(*[f"netns add {name}" for name in [self.switch, *self.names]])
        ip("link set lo up", "link add br0 type bridge", "addr add 10.231.9.254/24 dev br0", "link set br0 up",
           *[line for i, name in enumerate(self.names) for line in (
               f"link add port{i} type veth peer name eth0 netns {name}", f"link set port{i} master br0",
               f"link set port{i} up")], namespace=self.switch)
        for i, name in enumerate(self.names):
            ip("link set lo up", f"addr add {self.address(i)}/24 dev eth0", "link set eth0 up", namespace=name)
        agents = [word for i, name in enumerate(self.names) for word in (name, self.address(i))]
        self.double = subprocess.Popen([*self.enter.split(), sys.executable, "-B", os.path.abspath(__file__), *agents],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.double.stdout.readline().strip()

    def address(self, index):
        return f"10.231.9.{index + 1}"

    def set_link(self, index, passes):
        """Neither end sees that its link passes nothing."""
        ip(f"link set port{index} master br0" if passes else f"link set port{index} nomaster", namespace=self.switch)

    def tell(self, index, word):
        """Mesos no longer hears the agent ("lost"), or does again ("back") and ends what it has given up meanwhile."""
        self.double.stdin.write(f"{self.address(index)} {word}\n")
        self.double.stdin.flush()

    def close(self):
        if self.double:
            self.double.stdin.close()
            self.double.wait()
            self.double.stdout.close()
        for name in [self.switch, *self.names]:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def main(agents):
    sys.path.insert(0, os.path.join(HERE, "..", "..", "marathon"))
    import marathon_double  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory(prefix="marathon") as sandboxes:
        marathon = marathon_double.Marathon(sandboxes, len(agents) // 2)
        for agent, name, address in zip(marathon.scheduler.agents, agents[::2], agents[1::2]):
            agent.move(address, ["nsenter", f"--net=/run/netns/{name}"])
        print(marathon.url, flush=True)
        for line in sys.stdin:
            agent, word = line.split()
            marathon.scheduler.set_reachable(agent, word == "back")
        marathon.close()


if __name__ == "__main__":
    main(sys.argv[1:])
