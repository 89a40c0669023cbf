import * as z from "zod";

import { iso, parseDuration } from "../../domain/units.ts";
import {
  type AccessChange,
  accessRow,
  accountName,
  type Accounts,
  type Changed,
  fold,
  passwordFault,
  ROLES,
} from "../accounts.ts";
import type { AccessOptions, Person } from "./access.ts";
import { Refusal } from "./problem.ts";
import { route, type Route } from "./route.ts";

const user = z.object({ name: z.string(), role: z.enum(ROLES), addedAt: z.string() });
const tokenMembers = user.extend({
  expiresAt: z.string().nullable().describe("null: it does not expire."),
});
const token = tokenMembers.meta({ id: "Token" });

const newUser = z.strictObject({
  name: accountName,
  role: z.enum(ROLES),
  password: z.string().max(1024).describe("10 to 1024 characters."),
});

const newToken = z.strictObject({
  name: accountName,
  role: z.enum(ROLES),
  expires: z
    .string()
    .refine((text) => (parseDuration(text) ?? 0) > 0, { error: "a duration, e.g. 90d or 12h" })
    .exactOptional()
    .describe("The token ends after this time, e.g. 90d. Absent: it does not expire."),
});

/** Users and tokens: listed, added and removed. */
export function accountRoutes({ access, now, record }: AccessOptions): readonly Route[] {
  const accounts = (): Accounts => {
    if (access.kind === "open") throw new Refusal(409, "this listener has no login: operator.access is open");
    const { fault } = access.accounts;
    if (fault !== null) throw new Refusal(503, fault);
    return access.accounts;
  };
  const note = (person: Person, change: Omit<AccessChange, "by">): void => {
    const { message, facts } = accessRow({ by: person.name, ...change });
    record(message, facts);
  };
  return [...userRoutes({ accounts, note, now }), ...tokenRoutes({ accounts, note, now })];
}

interface AccountParts extends Pick<AccessOptions, "now"> {
  /** Refuses the request where there are none, or where they cannot be read. */
  readonly accounts: () => Accounts;
  /** Puts the change of a person on record. */
  readonly note: (person: Person, change: Omit<AccessChange, "by">) => void;
}

const userRoutes = ({ accounts, note, now }: AccountParts): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/users",
    role: "integrator",
    summary: "Users, without their passwords.",
    answer: z.array(user),
    handle: () => accounts().users.map(({ name, role, addedAt }) => ({ name, role, addedAt: iso(addedAt) })),
  }),
  route({
    method: "POST",
    path: "/api/v1/users",
    role: "integrator",
    summary: "Adds a user.",
    status: 201,
    body: newUser,
    answer: user,
    handle: async ({ body, person }) => {
      const { name, role, password } = body;
      const fault = passwordFault(password);
      if (fault !== null)
        throw new Refusal(400, fault, {
          errors: [{ path: "password", found: "a text (not shown)", expected: fault }],
        });
      const addedAt = now();
      settled(await accounts().addUser(name, role, password, addedAt), 409);
      note(person, { did: "added", kind: "user", name, role });
      return { name, role, addedAt: iso(addedAt) };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/v1/users/:name",
    role: "integrator",
    summary: "Removes a user, and ends the user's sessions. The last integrator stays.",
    status: 204,
    handle: ({ params, person }) => {
      const all = accounts();
      const name = nameIn(params);
      const [integrator, another] = all.users.filter(({ role }) => role === "integrator");
      if (integrator !== undefined && another === undefined && fold(integrator.name) === fold(name))
        throw new Refusal(409, `${name} is the last integrator: setpointd user remove removes it here`);
      settled(all.remove("users", name), 404);
      note(person, { did: "removed", kind: "user", name, role: null });
      return null;
    },
  }),
];

const tokenRoutes = ({ accounts, note, now }: AccountParts): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/tokens",
    role: "integrator",
    summary: "Tokens, without their secrets.",
    answer: z.array(token),
    handle: () =>
      accounts().tokens.map(({ name, role, addedAt, expiresAt }) => ({
        name,
        role,
        addedAt: iso(addedAt),
        expiresAt: expiresAt === null ? null : iso(expiresAt),
      })),
  }),
  route({
    method: "POST",
    path: "/api/v1/tokens",
    role: "integrator",
    summary: "Makes a token. The answer has its secret, which is shown only this once.",
    status: 201,
    body: newToken,
    answer: tokenMembers.extend({ token: z.string().describe("The secret: Authorization: Bearer.") }),
    handle: ({ body, person }) => {
      const { name, role, expires } = body;
      const addedAt = now();
      const made = accounts().addToken(
        name,
        role,
        expires === undefined ? null : parseDuration(expires),
        addedAt,
      );
      if (!made.ok) throw new Refusal(409, made.reason);
      note(person, { did: "added", kind: "token", name, role });
      const expiresAt = made.expiresAt === null ? null : iso(made.expiresAt);
      return { name, role, addedAt: iso(addedAt), expiresAt, token: made.token };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/v1/tokens/:name",
    role: "integrator",
    summary: "Removes a token. It stops working at once.",
    status: 204,
    handle: ({ params, person }) => {
      const name = nameIn(params);
      settled(accounts().remove("tokens", name), 404);
      note(person, { did: "removed", kind: "token", name, role: null });
      return null;
    },
  }),
];

const nameIn = (params: Readonly<Record<string, string>>): string => (params["name"] ?? "").normalize("NFC");

/** Throws why nothing changed. */
function settled(changed: Changed, status: number): void {
  if (!changed.ok) throw new Refusal(status, changed.reason);
}
