import type { FastifyReply, FastifyRequest } from "fastify";
import * as z from "zod";

import { accountName, ROLES, type SignedIn } from "../accounts.ts";
import { type AccessOptions, type FirstLink, Lockout, MAX_ATTEMPTS, type Person } from "./access.ts";
import { named } from "./holdAnswers.ts";
import { escapeHtml, type PageFiles, sendPage } from "./page.ts";
import { parsed, Refusal } from "./problem.ts";
import { route, type Route } from "./route.ts";

const personBody = named("Person", {
  name: z.string(),
  role: z.enum(ROLES).meta({ id: "Role" }),
  via: z.enum(["open", "session", "token"]).describe("open: the listener has no login."),
});

const credentials = z.strictObject({
  name: accountName,
  password: z.string().min(1).max(1024),
  once: z
    .string()
    .optional()
    .describe("The code of the link for the first user, which this request then creates, as an integrator."),
});
type Credentials = z.infer<typeof credentials>;

const CREATED_STATUS = 201;

/** Routes to sign in and out, and a form for a browser without script. */
export function sessionRoutes(
  options: AccessOptions & { readonly page: PageFiles | null },
  firstLink: FirstLink | null,
): readonly Route[] {
  const lockout = new Lockout(options.monotonic);
  const signIn = (request: FastifyRequest, given: Credentials): Promise<Person> =>
    startSession(request, given, options, lockout, firstLink);
  return [
    route({
      method: "GET",
      path: "/api/v1/session",
      role: "viewer",
      summary: "The person or program behind this request.",
      answer: personBody,
      handle: ({ person }) => ({ name: person.name, role: person.role, via: person.via }),
    }),
    route({
      method: "POST",
      path: "/api/v1/session",
      role: null,
      summary: "Signs a user in. The answer sets the cookie of the session.",
      body: credentials,
      status: CREATED_STATUS,
      answer: personBody,
      rateLimit: MAX_ATTEMPTS,
      handle: async ({ request, body }) => ({ ...(await signIn(request, body)) }),
    }),
    route({
      method: "DELETE",
      path: "/api/v1/session",
      role: null,
      summary: "Signs out. Without a session nothing happens.",
      status: 204,
      handle: async ({ request }) => {
        await endSession(request, options);
        return null;
      },
    }),
    ...(options.access.kind === "open" ? [] : formRoutes(signIn, options.page, firstLink)),
  ];
}

async function startSession(
  request: FastifyRequest,
  { name, password, once }: Credentials,
  { access, monotonic, now, record }: AccessOptions,
  lockout: Lockout,
  firstLink: FirstLink | null,
): Promise<Person> {
  if (access.kind === "open") throw new Refusal(409, "this listener has no login: operator.access is open");
  if (access.isSecure && request.protocol !== "https")
    throw new Refusal(403, "sign in over HTTPS; a reverse proxy has to send X-Forwarded-Proto: https");
  const wait = lockout.delay(request.ip, name);
  if (wait > 0) throw tooSoon(wait);
  const { accounts } = access;
  if (once !== undefined) {
    if (firstLink?.take(once) !== true) {
      lockout.failed(request.ip, name);
      throw new Refusal(401, "this link has expired or was used: a restart of setpointd prints a new one");
    }
    const added = await accounts.addUser(name, "integrator", password, now());
    if (!added.ok) {
      firstLink.giveBack();
      throw new Refusal(400, added.reason, {
        errors: [{ path: "password", found: "a text (not shown)", expected: added.reason }],
      });
    }
    record(`${name} was added as the first integrator`, { by: name, from: request.ip });
  }
  const user = await accounts.signIn(name, password);
  if (user === "busy")
    throw new Refusal(503, "too many people sign in at once", { headers: { "retry-after": "2" } });
  if (user === null) {
    const delay = lockout.failed(request.ip, name);
    if (delay > 0)
      record(`signing in as ${name} failed too often: the next attempt waits ${Math.ceil(delay / 1000)} s`, {
        name,
        from: request.ip,
      });
    throw new Refusal(401, "the name or the password is wrong");
  }
  lockout.succeeded(request.ip, name);
  // A new id, so that an id that was planted in the browser before is worth nothing.
  await request.session.regenerate();
  request.session.user = { ...user, since: monotonic() };
  record(`${user.name} signed in`, { by: user.name, role: user.role, from: request.ip });
  return personIn(user);
}

const personIn = ({ name, role }: SignedIn): Person => ({ name, role, via: "session" });

const tooSoon = (wait: number): Refusal => {
  const seconds = Math.ceil(wait / 1000);
  return new Refusal(429, `too many failed attempts: try again in ${seconds} s`, {
    headers: { "retry-after": String(seconds) },
  });
};

async function endSession(request: FastifyRequest, { access, record }: AccessOptions): Promise<void> {
  if (access.kind === "open" || request.session.user === undefined) return;
  const { name } = request.session.user;
  await request.session.destroy();
  record(`${name} signed out`, { by: name, from: request.ip });
}

const html = (reply: FastifyReply, status: number, content: string): FastifyReply =>
  reply
    .code(status)
    .type("text/html; charset=utf-8")
    .send(
      `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>setpointd</title><h1>setpointd</h1>${content}</html>`,
    );

/** A form that works without script as well. With script the page replaces it. */
function formRoutes(
  signIn: (request: FastifyRequest, given: Credentials) => Promise<Person>,
  page: PageFiles | null,
  firstLink: FirstLink | null,
): readonly Route[] {
  const once = z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .optional();
  return [
    route({
      method: "GET",
      path: "/login",
      role: null,
      summary: "A form to sign in, for browsers. With the code of the first link: to add the first user.",
      query: z.strictObject({ once }),
      isPage: true,
      handle: ({ query, reply }) => {
        const content = form(query.once, firstLink);
        return page === null ? html(reply, 200, content) : sendPage(page, reply, content);
      },
    }),
    route({
      method: "POST",
      path: "/login",
      role: null,
      summary: "Takes the form of GET /login.",
      bodyType: "application/x-www-form-urlencoded",
      isPage: true,
      rateLimit: MAX_ATTEMPTS,
      handle: async ({ request, reply }) => {
        try {
          const fields = request.body instanceof URLSearchParams ? Object.fromEntries(request.body) : {};
          const { name, role } = await signIn(request, parsed(credentials, fields, "body"));
          return html(
            reply,
            200,
            `<p>${escapeHtml(name)} is signed in as ${role}. <a href="/">Continue</a></p>`,
          );
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          reply.headers(error.headers);
          return html(
            reply,
            error.statusCode,
            `<p>${escapeHtml(error.message)}</p><p><a href="/login">Try again</a></p>`,
          );
        }
      },
    }),
  ];
}

function form(code: string | undefined, firstLink: FirstLink | null): string {
  if (code !== undefined && firstLink?.isValid(code) !== true)
    return "<p>This link has expired or was used. A restart of setpointd prints a new one while there is no user; setpointd user add adds one.</p>";
  const hidden = code === undefined ? "" : `<input type="hidden" name="once" value="${code}">`;
  const [title, complete] =
    code === undefined ? ["Sign in", "current-password"] : ["Add the first user", "new-password"];
  return `<form method="post" action="/login"><h2>${title}</h2>${hidden}<p><label>Name <input name="name" autocomplete="username" required></label></p><p><label>Password <input name="password" type="password" autocomplete="${complete}" required></label></p><p><button>${title}</button></p></form>`;
}
