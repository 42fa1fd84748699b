"""Hosts for jobs of one machine: network namespaces with a link to a switch each, and a double of Marathon whose agents they
are. Their share of the processors and the rate of their links can be set. Needs root. As a program: hosts.py
NAMESPACE ADDRESS GROUP …: the double, in its own network, whose tasks join the control group whose file of processes is GROUP
("-": none); prints its URL, reads lines "AGENT lost" and "AGENT back", and ends with its standard input."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 4
QUOTA_PERIOD = 5000  # us; the kernel's usual 100 ms would be seen as latency of the network
JOIN = 'echo $$ > "$1" && shift && exec "$@"'


def ip(*lines, namespace=None):
    """Runs lines of ip(8), in a namespace."""
    command = ["ip", *(["-n", namespace] if namespace else []), "-batch", "-"]
    subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True, stdout=subprocess.DEVNULL)


class ProcessorGroup:
    """A control group whose processes get a share of a core together, by the version of control groups that the machine has."""

    def __init__(self, name, cores):
        first = os.path.join("/sys/fs/cgroup/cpu", name)
        second = os.path.join("/sys/fs/cgroup", name)
        quota = max(1000, round(cores * QUOTA_PERIOD))
        if os.path.isdir("/sys/fs/cgroup/cpu"):
            self.path, settings = first, {"cpu.cfs_period_us": str(QUOTA_PERIOD), "cpu.cfs_quota_us": str(quota)}
        else:
            self.path, settings = second, {"cpu.max": f"{quota} {QUOTA_PERIOD}"}
        os.mkdir(self.path)
        for file, value in settings.items():
            with open(os.path.join(self.path, file), "w", encoding="ascii") as f:
                f.write(value)
        self.processes = os.path.join(self.path, "cgroup.procs")

    def close(self):
        with contextlib.suppress(OSError):  # a process that is still ending; the group is empty and goes with the machine
            os.rmdir(self.path)


class Hosts:
    """The switch's namespace, where `shoal run` is started as well, and `count` hosts. `cores`, if given: the share of a core
    of each host; `megabits`, if given: the rate of each link, each way."""

    def __init__(self, mark, count=COUNT, cores=None, megabits=None):
        self.switch = f"shoal-{mark}-s"
        self.names = [f"shoal-{mark}-{i}" for i in range(count)]
        self.enter = f"nsenter --net=/run/netns/{self.switch}"
        self.double, self.groups = None, []
        try:
            self.groups = [ProcessorGroup(name, share) for name, share in zip(self.names, cores or ())]
            self._make(megabits)
        except BaseException:
            self.close()
            raise

    def _make(self, megabits):
        ip(*[f"netns add {name}" for name in [self.switch, *self.names]])
        ip("link set lo up", "link add br0 type bridge", "addr add 10.231.9.254/24 dev br0", "link set br0 up",
           *[line for i, name in enumerate(self.names) for line in (
               f"link add port{i} type veth peer name eth0 netns {name}", f"link set port{i} master br0",
               f"link set port{i} up")], namespace=self.switch)
        for i, name in enumerate(self.names):
            ip("link set lo up", f"addr add {self.address(i)}/24 dev eth0", "link set eth0 up", namespace=name)
            if megabits:
                self._limit(name, "eth0", megabits)
                self._limit(self.switch, f"port{i}", megabits)
        groups = [group.processes for group in self.groups] or ["-"] * len(self.names)
        agents = [word for i, name in enumerate(self.names) for word in (name, self.address(i), groups[i])]
        self.double = subprocess.Popen([*self.enter.split(), sys.executable, "-B", os.path.abspath(__file__), *agents],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.double.stdout.readline().strip()

    @staticmethod
    def _limit(namespace, device, megabits):
        burst = max(16384, round(megabits * 1e6 / 8 * 0.002))  # what passes in 2 ms: the kernel's clock may tick that rarely
        subprocess.run(["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{round(megabits * 1000)}kbit",
                        "burst", str(burst), "latency", "50ms"], check=True)

    def bytes_sent(self):
        """Bytes that all hosts have sent over their links since they were made."""
        shown = subprocess.run(["ip", "-n", self.switch, "-s", "-json", "link"], stdout=subprocess.PIPE, text=True, check=True)
        return sum(link["stats64"]["rx"]["bytes"] for link in json.loads(shown.stdout) if link["ifname"].startswith("port"))

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
        for group in self.groups:
            group.close()


def main(agents):
    sys.path.insert(0, os.path.join(HERE, "..", "..", "marathon"))
    import marathon_double  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory(prefix="marathon") as sandboxes:
        marathon = marathon_double.Marathon(sandboxes, len(agents) // 3)
        for agent, name, address, group in zip(marathon.scheduler.agents, agents[::3], agents[1::3], agents[2::3]):
            join = [] if group == "-" else ["sh", "-c", JOIN, "sh", group]
            agent.move(address, [*join, "nsenter", f"--net=/run/netns/{name}"])
        print(marathon.url, flush=True)
        for line in sys.stdin:
            agent, word = line.split()
            marathon.scheduler.set_reachable(agent, word == "back")
        marathon.close()


if __name__ == "__main__":
    main(sys.argv[1:])
