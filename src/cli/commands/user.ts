import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { isatty } from "node:tty";
import { Option } from "commander";

import type { Config } from "../../config/schema.ts";
import type { StateOfSite } from "../../daemon/offline.ts";
import { accountsIn } from "../../daemon/stateFolder.ts";
import { auditRow } from "../../domain/audit.ts";
import { type Instant, instant, iso, parseDuration } from "../../domain/units.ts";
import {
  type AccessChange,
  accessRow,
  accountName,
  type Accounts,
  type Changed,
  passwordFault,
  type Role,
  ROLES,
} from "../../operator/accounts.ts";
import { recordConfiguration } from "../configuration.ts";
import { askDaemon, personHere } from "../daemonClient.ts";
import { wallClock } from "../../platform/clock.ts";
import { complain, fail, type ExitCode, say, type Verb } from "../output.ts";
import { withState } from "../storedState.ts";

const WHO =
  "viewer: reads. operator: also holds, alarms, departures, vehicles at bays and reboots. integrator: also the mode, the configuration, tests of chargers, users and tokens; needed";

/** Users and tokens of a site, and the record of their changes. */
interface SiteAccess {
  readonly accounts: Accounts;
  /** Zone of the site. */
  readonly timezone: string;
  /** Puts a change on record: by the daemon, or in the stored state where none runs. */
  readonly record: (change: Omit<AccessChange, "by">) => Promise<void>;
}

/** Null: there is no usable configuration, which has been printed. */
async function accountsOf(named: string | undefined): Promise<SiteAccess | null> {
  const found = await recordConfiguration(named);
  if (found === null) return null;
  const { config, isFleet } = found;
  if (config.operator.access === "open")
    complain("operator.access is open: users and tokens count once it is login");
  return {
    accounts: accountsIn(config.state),
    timezone: config.site.timezone,
    record: async (change) => {
      const record = isFleet ? recordedInFleet : recorded;
      const fault = await record(config, { by: personHere(), ...change });
      if (fault !== null) complain(`this change is not on record: ${fault}`);
    },
  };
}

/** Null: on record, or there is no record yet. */
async function recorded(site: StateOfSite, change: AccessChange): Promise<string | null> {
  const answer = await askDaemon(site.state, "POST", "/access", change);
  if (answer.kind === "failed") return answer.reason;
  if (answer.kind === "answered") return null;
  const { message, facts } = accessRow(change);
  const { missingOffline } = await import("../../daemon/offline.ts");
  if (missingOffline(site) !== null) return null;
  const stored = await withState(site, async ({ store }) => {
    store.write([auditRow("operator", now(), message, { facts })]);
    return store.durable();
  });
  if (typeof stored === "string") return stored;
  return stored.ok ? null : stored.reason;
}

const now = (): Instant => instant(Date.now());

/** Null: on the record of the fleet, whose processes share it. */
async function recordedInFleet(shared: Config, change: AccessChange): Promise<string | null> {
  const { recordInFleet } = await import("../../daemon/offline.ts");
  const { logger } = await import("../logger.ts");
  return recordInFleet(shared, { now, randomBytes, log: logger(2, "error") }, [
    { at: now(), ...accessRow(change) },
  ]);
}

/** Normalized name. Null: it cannot be a name, which has been printed. */
function checkedName(name: string): string | null {
  const result = accountName.safeParse(name);
  if (result.success) return result.data;
  complain(`${JSON.stringify(name)} cannot be a name: ${result.error.issues[0]?.message ?? ""}`);
  return null;
}

function finished(changed: Changed, done: string): ExitCode {
  if (changed.ok) say(done);
  else complain(changed.reason);
  return changed.ok ? 0 : 1;
}

/** The first line of standard input; on a terminal without an echo. Null: there is none. */
async function readSecret(prompt: string): Promise<string | null> {
  const isTerminal = isatty(0);
  if (isTerminal) process.stderr.write(prompt);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: isTerminal });
  try {
    for await (const line of lines) return line;
    return null;
  } finally {
    lines.close();
    if (isTerminal) process.stderr.write("\n");
  }
}

/** Null: there is no usable password, which has been printed. */
async function newPassword(name: string): Promise<string | null> {
  const password = (await readSecret(`Password for ${name}: `)) ?? "";
  const fault = passwordFault(password);
  if (fault !== null) {
    complain(isatty(0) ? fault : `${fault}; it is read from the first line of standard input`);
    return null;
  }
  if (isatty(0) && (await readSecret("Again: ")) !== password) {
    complain("the two passwords differ");
    return null;
  }
  return password;
}

async function addUser(
  named: string | undefined,
  given: string,
  role: Role,
  now: () => Instant,
): Promise<ExitCode> {
  const access = await accountsOf(named);
  const name = access === null ? null : checkedName(given);
  if (access === null || name === null) return 2;
  const { accounts } = access;
  if (accounts.users.some((user) => user.name === name))
    return finished({ ok: false, reason: `there is a user ${name} already: user remove ${name} first` }, "");
  const password = await newPassword(name);
  if (password === null) return 1;
  const added = await accounts.addUser(name, role, password, now());
  if (added.ok) await access.record({ did: "added", kind: "user", name, role });
  return finished(added, `${name} may sign in as ${role}`);
}

async function addToken(
  named: string | undefined,
  given: string,
  role: Role,
  expires: string | undefined,
  now: () => Instant,
): Promise<ExitCode> {
  const span = expires === undefined ? null : parseDuration(expires);
  if (expires !== undefined && (span === null || span <= 0))
    return fail(2, `--expires ${expires} is not a duration, e.g. 90d or 12h`);
  const access = await accountsOf(named);
  const name = access === null ? null : checkedName(given);
  if (access === null || name === null) return 2;
  const added = access.accounts.addToken(name, role, span, now());
  if (!added.ok) return finished(added, "");
  await access.record({ did: "added", kind: "token", name, role });
  complain(
    `token ${name} may act as ${role}${added.expiresAt === null ? ", without an end" : ` until ${wallClock(access.timezone, now)(added.expiresAt)}, time in ${access.timezone}`}. It is shown only this once:`,
  );
  say(added.token);
  return 0;
}

async function remove(named: string | undefined, kind: "users" | "tokens", name: string): Promise<ExitCode> {
  const access = await accountsOf(named);
  if (access === null) return 2;
  const removed = access.accounts.remove(kind, name);
  if (removed.ok)
    await access.record({ did: "removed", kind: kind === "users" ? "user" : "token", name, role: null });
  return finished(
    removed,
    kind === "users" ? `user ${name} is removed, and signed out` : `token ${name} is removed`,
  );
}

interface ListedAccount {
  readonly name: string;
  readonly role: Role;
  readonly addedAt: Instant;
  /** Undefined: a user. Null: no end. */
  readonly expiresAt?: Instant | null;
}

async function list(
  named: string | undefined,
  kind: "users" | "tokens",
  json: boolean,
  now: () => Instant,
): Promise<ExitCode> {
  const access = await accountsOf(named);
  if (access === null) return 2;
  const { accounts } = access;
  const { fault } = accounts;
  if (fault !== null) return fail(1, fault);
  const rows: readonly ListedAccount[] = accounts[kind];
  if (json) {
    say(JSON.stringify(rows.map(shown)));
    return 0;
  }
  const clock = wallClock(access.timezone, now);
  say(
    rows.length === 0 ? `there is no ${kind === "users" ? "user" : "token"}` : `times in ${access.timezone}`,
  );
  for (const { name, role, addedAt, expiresAt } of rows) {
    const end =
      expiresAt === undefined || expiresAt === null
        ? ""
        : `, ${expiresAt <= now() ? "expired" : "expires"} ${clock(expiresAt)}`;
    say(`${name}  ${role}  since ${clock(addedAt)}${end}`);
  }
  return 0;
}

/** Without hashes. */
const shown = ({ name, role, addedAt, expiresAt }: ListedAccount) => ({
  name,
  role,
  addedAt: iso(addedAt),
  ...(expiresAt === undefined ? {} : { expiresAt: expiresAt === null ? null : iso(expiresAt) }),
});

const roleOption = (): Option => new Option("--role <role>", WHO).choices(ROLES).makeOptionMandatory();

export const userVerb: Verb = (user, { config, now, done }) => {
  user
    .command("add")
    .description("add a user; the password is asked for, or read from the first line of standard input")
    .argument("<name>", "name that the record shows")
    .addOption(roleOption())
    .action(async (name: string, { role }: { role: Role }) => done(await addUser(config(), name, role, now)));
  user
    .command("list")
    .description("list the users")
    .option("--json", "print one JSON array", false)
    .action(async ({ json }: { json: boolean }) => done(await list(config(), "users", json, now)));
  user
    .command("remove")
    .description("remove a user; the running daemon ends the user's sessions at once")
    .argument("<name>", "name of the user")
    .action(async (name: string) => done(await remove(config(), "users", name)));
};

export const tokenVerb: Verb = (token, { config, now, done }) => {
  token
    .command("add")
    .description("make a token and print it; it is shown only this once")
    .argument("<name>", "name that the record shows")
    .addOption(roleOption())
    .option("--expires <duration>", "the token ends after this time, e.g. 90d; left out: never")
    .action(async (name: string, { role, expires }: { role: Role; expires?: string }) =>
      done(await addToken(config(), name, role, expires, now)),
    );
  token
    .command("list")
    .description("list the tokens, without their secrets")
    .option("--json", "print one JSON array", false)
    .action(async ({ json }: { json: boolean }) => done(await list(config(), "tokens", json, now)));
  token
    .command("remove")
    .description("remove a token; it stops working at once")
    .argument("<name>", "name of the token")
    .action(async (name: string) => done(await remove(config(), "tokens", name)));
};
