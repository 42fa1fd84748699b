// A table that may be wider than the page.
import type { ComponentChildren } from "preact";
import { Scroll } from "./controls";

export interface Column<T> {
  head: string;
  number?: boolean;
  cell: (row: T, index: number) => ComponentChildren;
}

export function Table<T>(properties: {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  rowKey: (row: T, index: number) => string | number;
  empty?: string; // shown in place of a table without rows
}) {
  const { label, columns, rows, rowKey, empty } = properties;
  if (rows.length === 0 && empty !== undefined) return <p class="dim">{empty}</p>;
  return (
    <Scroll label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column, at) =>
              column.head ? (
                <th key={at} class={column.number ? "number" : ""}>
                  {column.head}
                </th>
              ) : (
                <td key={at} />
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={rowKey(row, index)}>
              {columns.map((column, at) => (
                <td key={at} class={column.number ? "number" : ""}>
                  {column.cell(row, index)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

// A text that people or programs have chosen: its direction does not change what is around it.
export function Bdi({ children }: { children: ComponentChildren }) {
  return <bdi>{children}</bdi>;
}
