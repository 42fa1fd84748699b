// Queues with their shares and who waits, machines, and what was used.
import { type Amounts, api } from "../lib/api";
import { bytes, number } from "../lib/format";
import { t } from "../lib/strings";
import { Fault, Link, Scroll, useLoad, useNow } from "../parts/controls";

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
      <Scroll label={t("queues")}>
        <table>
          <thead>
            <tr>
              <th>{t("queue")}</th>
              <th>{t("mode")}</th>
              <th class="number">{t("running")}</th>
              <th class="number">{t("waiting")}</th>
              <th>{t("used")}</th>
            </tr>
          </thead>
          <tbody>
            {value?.items.map((queue) => (
              <tr key={queue.name}>
                <td style={{ paddingInlineStart: `${1.2 * queue.depth}rem` }}>{queue.name}</td>
                <td>{queue.mode}</td>
                <td class="number">{queue.running}</td>
                <td class="number">{queue.waiting}</td>
                <td>
                  {queue.flavors.flatMap((flavor) =>
                    flavor.resources.map((one) => {
                      const text = `${flavor.flavor} ${one.resource}: ${amount(one.resource, one.used)} / ${one.limited || one.nominal > 0 ? amount(one.resource, one.nominal) : "–"}${one.borrowed > 0 ? `, ${t("borrowed")} ${amount(one.resource, one.borrowed)}` : ""}`;
                      return (
                        <div key={flavor.flavor + one.resource}>
                          <Meter used={one.used} of={one.nominal} label={text} /> {text}
                        </div>
                      );
                    }),
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
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
      <Scroll label={t("machines")}>
        <table>
          <tbody>
            {machines.map((machine) => (
              <tr key={machine.flavor}>
                <td>{machine.flavor}</td>
                <td>
                  {Object.keys({ ...machine.total, ...machine.used }).map((resource) => {
                    const used = machine.used[resource] ?? 0;
                    const total = machine.total[resource] ?? 0;
                    const text = `${resource}: ${amount(resource, used)} / ${total > 0 ? amount(resource, total) : "–"}`;
                    return (
                      <div key={resource}>
                        <Meter used={used} of={total} label={text} /> {text}
                      </div>
                    );
                  })}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
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
      <Scroll label={t("usage")}>
        <table>
          <thead>
            <tr>
              <th>{t("month")}</th>
              <th>{t("team")}</th>
              <th>{t("user")}</th>
              <th>{t("queue")}</th>
              <th>{t("engine")}</th>
              <th class="number">{t("count")}</th>
              <th class="number">{t("cpuHours")}</th>
              <th class="number">{t("gpuHours")}</th>
              <th class="number">{t("gibHours")}</th>
              <th class="number">{t("failedShare")}</th>
            </tr>
          </thead>
          <tbody>
            {items.map((one) => (
              <tr key={`${one.month}${one.team}${one.user}${one.queue}${one.engine}`}>
                <td>{one.month}</td>
                <td>
                  <bdi>{one.team}</bdi>
                </td>
                <td>
                  <bdi>{one.user}</bdi>
                </td>
                <td>{one.queue}</td>
                <td>{one.engine}</td>
                <td class="number">{one.jobs}</td>
                <td class="number">{number(one.held.cpu_hours)}</td>
                <td class="number">{number(one.held.gpu_hours)}</td>
                <td class="number">{number(one.held.memory_byte_hours / GIB)}</td>
                <td class="number">{number(one.failed.cpu_hours)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}
