import { createHmac } from "node:crypto";
import { between, type Instant, type Millis } from "../core/units.ts";

/** The client that the partner knows, and how long a token of it lives. */
export interface Registration {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly lifetime: Millis;
}

/** An answer of the token endpoint; errors as RFC 6749 5.2 spells them. */
export type TokenAnswer =
  | { readonly status: 200; readonly body: { readonly access_token: string; readonly expires_in: number } }
  | { readonly status: 400; readonly body: { readonly error: string; readonly error_description: string } };

const refused = (error: string, error_description: string): TokenAnswer => ({
  status: 400,
  body: { error, error_description },
});

const FIELDS = ["grant_type", "scope", "client_id", "client_secret"] as const;

/** The identity server (partner-interface 5): issues tokens and knows which of them still hold. */
export class Tokens {
  readonly #registration: Registration;
  readonly #issued = new Map<string, Instant>();
  #count = 0;

  constructor(registration: Registration) {
    this.#registration = registration;
  }

  /** All four fields, once each, and nothing else (partner-interface 5, step 2). */
  grant(form: URLSearchParams, now: Instant): TokenAnswer {
    for (const field of FIELDS)
      if (form.getAll(field).length !== 1) return refused("invalid_request", `${field} once`);
    const stranger = [...form.keys()].find((name) => !FIELDS.some((field) => field === name));
    if (stranger !== undefined) return refused("invalid_request", `unknown field ${stranger}`);
    if (form.get("grant_type") !== "client_credentials")
      return refused("unsupported_grant_type", "client_credentials only");
    if (form.get("scope") === "") return refused("invalid_scope", "scope is empty");
    const { clientId, clientSecret, lifetime } = this.#registration;
    if (form.get("client_id") !== clientId || form.get("client_secret") !== clientSecret)
      return refused("invalid_client", "unknown client or wrong secret");
    this.#count += 1;
    const token = createHmac("sha256", clientSecret).update(`${now} ${this.#count}`).digest("base64url");
    this.#issued.set(token, now);
    return { status: 200, body: { access_token: token, expires_in: Math.floor(lifetime / 1000) } };
  }

  /** Whether an `Authorization` header carries a token that still holds. */
  admits(authorization: string | undefined, now: Instant): boolean {
    const token = /^Bearer ([\w-]+)$/.exec(authorization ?? "")?.[1];
    const issued = token === undefined ? undefined : this.#issued.get(token);
    return issued !== undefined && between(issued, now) < this.#registration.lifetime;
  }

  /** From now on no token issued so far is accepted. */
  revoke(): void {
    this.#issued.clear();
  }
}
