// Queues with their shares and who waits, machines, and what was used.
import { type Amounts, api } from "../lib/api";
import { bytes, number } from "../lib/format";
import { t } from "../lib/strings";
import { Fault, Link, useLoad, useNow } from "../parts/controls";
import { Bdi, Table } from "../parts/table";

const PERIOD_MS = 5000;
const GIB = 2 ** 30;

function amount(resource: string, value: number): string {
  return resource === "memory" ? bytes(value) : number(value);
}

function Meter({ used, of, label }: { used: number; of: number; label: string }) {
  const part = of > 0 ? Math.min(1, used / of) : 0;
  return (
    <span class="meter" role="img" aria-label={label}>
      <i style={{ width: `${100 * part}%` }} />
    </span>
  );
}

export function QueuesPage() {
  const turn = Math.floor(useNow(PERIOD_MS) / PERIOD_MS);
  const queues = useLoad("queues", api.queues);
  const again = useLoad(`queues ${turn}`, api.queues);
  const value = again.value ?? queues.value;
  const machines = (value?.machines ?? []).filter((one) => hasAny(one.total) || hasAny(one.used));
  return (
    <>
      <h1>{t("queues")}</h1>
      <Fault error={queues.error} />
      <Table
        label={t("queues")}
        rows={value?.items ?? []}
        rowKey={(queue) => queue.name}
        columns={[
          {
            head: t("queue"),
            cell: (queue) => (
              <span style={{ paddingInlineStart: `${1.2 * queue.depth}rem` }}>{queue.name}</span>
            ),
          },
          { head: t("mode"), cell: (queue) => queue.mode },
          { head: t("running"), number: true, cell: (queue) => queue.running },
          { head: t("waiting"), number: true, cell: (queue) => queue.waiting },
          {
            head: t("used"),
            cell: (queue) =>
              queue.flavors.flatMap((flavor) =>
                flavor.resources.map((one) => {
                  const text = `${flavor.flavor} ${one.resource}: ${amount(one.resource, one.used)} / ${one.limited || one.nominal > 0 ? amount(one.resource, one.nominal) : "–"}${one.borrowed > 0 ? `, ${t("borrowed")} ${amount(one.resource, one.borrowed)}` : ""}`;
                  return (
                    <div key={flavor.flavor + one.resource}>
                      <Meter used={one.used} of={one.nominal} label={text} /> {text}
                    </div>
                  );
                }),
              ),
          },
        ]}
      />
      <h2>{t("waiting")}</h2>
      <ul>
        {value?.items.flatMap((queue) =>
          queue.jobs.map((job, index) => (
            <li key={job.id ?? `${queue.name}${index}`}>
              {queue.name}:{" "}
              {job.id ? (
                <Link href={`/jobs/${encodeURIComponent(job.id)}`}>{job.id}</Link>
              ) : (
                job.team
              )}{" "}
              <span class="dim">{job.reason}</span>
            </li>
          )),
        )}
      </ul>
      <h2>{t("machines")}</h2>
      <Table
        label={t("machines")}
        rows={machines}
        rowKey={(machine) => machine.flavor}
        columns={[
          { head: t("kind"), cell: (machine) => machine.flavor },
          {
            head: t("used"),
            cell: (machine) =>
              Object.keys({ ...machine.total, ...machine.used }).map((resource) => {
                const used = machine.used[resource] ?? 0;
                const total = machine.total[resource] ?? 0;
                const text = `${resource}: ${amount(resource, used)} / ${total > 0 ? amount(resource, total) : "–"}`;
                return (
                  <div key={resource}>
                    <Meter used={used} of={total} label={text} /> {text}
                  </div>
                );
              }),
          },
        ]}
      />
    </>
  );
}

function hasAny(amounts: Amounts): boolean {
  return Object.values(amounts).some((value) => value > 0);
}

export function UsagePage() {
  const usage = useLoad("usage", api.usage);
  const items = [...(usage.value?.items ?? [])].sort((a, b) => b.month.localeCompare(a.month));
  return (
    <>
      <h1>{t("usage")}</h1>
      <Fault error={usage.error} />
      <Table
        label={t("usage")}
        rows={items}
        rowKey={(one) => `${one.month}${one.team}${one.user}${one.queue}${one.engine}`}
        columns={[
          { head: t("month"), cell: (one) => one.month },
          { head: t("team"), cell: (one) => <Bdi>{one.team}</Bdi> },
          { head: t("user"), cell: (one) => <Bdi>{one.user}</Bdi> },
          { head: t("queue"), cell: (one) => one.queue },
          { head: t("engine"), cell: (one) => one.engine },
          { head: t("count"), number: true, cell: (one) => one.jobs },
          { head: t("cpuHours"), number: true, cell: (one) => number(one.held.cpu_hours) },
          { head: t("gpuHours"), number: true, cell: (one) => number(one.held.gpu_hours) },
          {
            head: t("gibHours"),
            number: true,
            cell: (one) => number(one.held.memory_byte_hours / GIB),
          },
          { head: t("failedShare"), number: true, cell: (one) => number(one.failed.cpu_hours) },
        ]}
      />
    </>
  );
}
