// Tables of the catalogue: columns, and who may read what of them (docs/catalog.md).
import { api, type CatalogTable, type Grant } from "../lib/api";
import { time } from "../lib/format";
import type { Place } from "../lib/router";
import { t } from "../lib/strings";
import { Fault, Link, useLoad } from "../parts/controls";
import { Bdi, Table } from "../parts/table";

const nameOf = (table: CatalogTable) => `${table.database}.${table.name}`;

export function DataPage({ place }: { place: Place }) {
  const [, table] = place.path;
  return table ? <One key={table} name={table} /> : <List />;
}

function List() {
  const tables = useLoad("tables", api.tables);
  return (
    <>
      <h1>{t("data")}</h1>
      <Fault error={tables.error} />
      {tables.value && (
        <Table
          label={t("tables")}
          rows={tables.value.items}
          rowKey={nameOf}
          empty={t("noTables")}
          columns={[
            {
              head: t("table"),
              cell: (table) => (
                <Link href={`/data/${encodeURIComponent(nameOf(table))}`}>
                  <Bdi>{nameOf(table)}</Bdi>
                </Link>
              ),
            },
            { head: t("owner"), cell: (table) => <Bdi>{table.owner}</Bdi> },
            { head: t("format"), cell: (table) => table.format },
            { head: t("columns"), number: true, cell: (table) => table.columns?.length ?? 0 },
          ]}
        />
      )}
    </>
  );
}

function One({ name }: { name: string }) {
  const found = useLoad(`table ${name}`, () => api.table(name));
  const access = useLoad(`access ${name}`, () => api.tableAccess(name));
  const table = found.value;
  const mine = access.value;
  return (
    <>
      <h1>
        <Link href="/data">{t("data")}</Link> / <Bdi>{name}</Bdi>
      </h1>
      <Fault error={found.error ?? access.error} />
      {table && (
        <>
          <dl class="facts">
            <dt>{t("owner")}</dt>
            <dd>
              <Bdi>{table.owner}</Bdi>
            </dd>
            <dt>{t("format")}</dt>
            <dd>{table.format}</dd>
            {table.sources && (
              <>
                <dt>{t("sources")}</dt>
                <dd>
                  {table.sources.map((source) => (
                    <div key={source}>
                      <Bdi>{source}</Bdi>
                    </div>
                  ))}
                </dd>
              </>
            )}
            {mine && (
              <>
                <dt>{t("youMayRead")}</dt>
                <dd>
                  {mine.refusal ?? (mine.rows ? t("onlyRows", { rows: mine.rows }) : t("allRows"))}
                </dd>
              </>
            )}
          </dl>
          <h2>{t("columns")}</h2>
          <Table
            label={t("columns")}
            rows={table.columns ?? []}
            rowKey={(column) => column.name}
            empty={t("noColumns")}
            columns={[
              { head: t("name"), cell: (column) => <Bdi>{column.name}</Bdi> },
              { head: t("kind"), cell: (column) => column.type },
              { head: t("tags"), cell: (column) => (table.tags?.[column.name] ?? []).join(", ") },
              { head: t("mask"), cell: (column) => table.masks?.[column.name]?.mask ?? "" },
              {
                head: t("youMayRead"),
                cell: (column) => columnAccess(column.name, mine),
              },
            ]}
          />
          {table.grants && (
            <>
              <h2>{t("grants")}</h2>
              <Table
                label={t("grants")}
                rows={table.grants}
                rowKey={(grant) => grant.id}
                empty={t("noGrants")}
                columns={[
                  { head: t("id"), cell: (grant) => grant.id },
                  { head: t("reader"), cell: (grant) => <Bdi>{grant.to}</Bdi> },
                  { head: t("columns"), cell: columnsOf },
                  { head: t("rows"), cell: (grant) => <code>{grant.rows ?? ""}</code> },
                  {
                    head: t("expires"),
                    cell: (grant) =>
                      grant.expires_us
                        ? time(new Date(grant.expires_us / 1000).toISOString())
                        : t("never"),
                  },
                ]}
              />
            </>
          )}
        </>
      )}
    </>
  );
}

function columnsOf(grant: Grant): string {
  const masked = Object.entries(grant.masks ?? {}).map(([column, mask]) => `${column}: ${mask}`);
  const columns = grant.columns?.length ? grant.columns.join(", ") : t("all");
  return masked.length > 0 ? `${columns} (${masked.join(", ")})` : columns;
}

function columnAccess(
  name: string,
  access: { columns?: { name: string; mask?: string }[]; refusal?: string } | undefined,
): string {
  if (!access || access.refusal) return "";
  const found = access.columns?.find((one) => one.name === name);
  if (!found) return "–";
  return found.mask && found.mask !== "none" ? t("masked", { mask: found.mask }) : t("yes");
}
