import { macOf } from "../bodies.ts";
import type { MovedBody, MovedRows } from "../movedState.ts";
import { readingMac } from "../readingRow.ts";
import { storedRow } from "./batch.ts";
import { column } from "./database.ts";

type Insert = readonly [sql: string, values: readonly unknown[]];

/** The statement that stores these rows, and its values. */
export function insertOf(site: string, siteKey: Buffer, moved: MovedRows): Insert {
  const insert = (into: string, columns: string, rows: readonly object[]): Insert => [
    `INSERT INTO ${into} SELECT $1, x.* FROM json_to_recordset($2::json) AS x (${columns})`,
    [site, JSON.stringify(rows)],
  ];
  switch (moved.table) {
    case "audit":
      return insert(
        "audit",
        "seq bigint, at bigint, kind text, charger text, event text, command text, body text, hash text",
        moved.rows.map(storedRow),
      );
    case "acknowledged":
      return insert(
        "acknowledged",
        "charger text, seq bigint",
        moved.rows.map(([charger, seq]) => ({ charger: column(charger), seq })),
      );
    case "body":
      return insert(
        "body (site, kind, id, event, open, moment, body, mac)",
        "kind text, id text, event text, open boolean, moment bigint, body text, mac text",
        moved.rows.map((row) => storedBody(siteKey, row)),
      );
    case "quarantine":
      return insert(
        "quarantine (site, body)",
        "body text",
        moved.rows.map((row) => ({ body: JSON.stringify(row) })),
      );
    case "reading":
      return insert(
        "reading",
        "minute bigint, charger text, at bigint, delay bigint, vehicle text, body text, mac bytea",
        moved.rows.map((row) => {
          const [minute, charger, at, delay, vehicle = null] = row;
          const mac = `\\x${readingMac(siteKey, row).toString("hex")}`;
          const ids = {
            charger: column(String(charger)),
            vehicle: vehicle === null ? null : column(String(vehicle)),
          };
          return { minute, at, delay, ...ids, body: JSON.stringify(row), mac };
        }),
      );
    case "seat":
      return insert(
        "seat",
        "day bigint, vehicle text, charger text",
        moved.rows.map(([day, vehicle, charger]) => ({
          day,
          vehicle: column(vehicle),
          charger: column(charger),
        })),
      );
  }
}

function storedBody(siteKey: Buffer, { table, id, body }: MovedBody) {
  const stored = { kind: table, id: column(id) ?? "", body: column(body) ?? "" };
  const about = { event: null, open: false, moment: null };
  const mac = macOf(siteKey, table, stored.id, stored.body);
  if (table === "duty") return { ...stored, ...about, event: column(JSON.parse(body).event), mac };
  if (table !== "report") return { ...stored, ...about, mac };
  const { event, nextTry, composedAt } = JSON.parse(body);
  return { ...stored, event: column(event), open: nextTry !== null, moment: composedAt, mac };
}
