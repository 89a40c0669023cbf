import { z } from "zod";
import { type Millis, millis, minutes, seconds } from "../core/units.ts";
import { type Answer, bodyOf } from "./exchange.ts";
import { type Failed, failed } from "./failed.ts";
import { retryAfterOf } from "./headers.ts";

/** A token, or why there is none. */
export type TokenOutcome = { readonly kind: "token"; readonly token: string } | Failed;

/** partner-interface 5: valid for one hour. */
const ASSUMED_LIFE = minutes(60);
const LONGEST_LIFE = minutes(24 * 60);
const SHORTEST_LIFE = seconds(60);

/** partner-interface 5.3 promises `access_token` only. The pattern keeps line breaks out of our headers (F36). */
const tokenBody = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  expires_in: z.unknown().optional(),
});

/** Obeyed between 60 s and 24 h; under that it is 60 s, and anything that is no sensible life is one hour. */
export function tokenLife(expiresIn: unknown): Millis {
  const life = typeof expiresIn === "number" ? expiresIn * 1000 : Number.NaN;
  return life > 0 && life <= LONGEST_LIFE ? millis(Math.max(life, SHORTEST_LIFE)) : ASSUMED_LIFE;
}

/** A token that was just issued, and how long it lives. */
interface Issued {
  readonly kind: "token";
  readonly token: string;
  readonly life: Millis;
}

/** What the token server answered: a token and how long it lives, or why there is none (partner-interface 5). */
export function readToken(answer: Answer): Issued | Failed {
  if (answer.kind === "silent") return failed(answer.reason, null, null);
  const { status, headers, at } = answer;
  if (status !== 200) return failed(`the token server answered ${status}`, status, retryAfterOf(headers, at));
  const parsed = tokenBody.safeParse(jsonOrNull(bodyOf(answer)));
  if (!parsed.success) return failed("the token server's answer holds no usable access_token", status, null);
  return { kind: "token", token: parsed.data.access_token, life: tokenLife(parsed.data.expires_in) };
}

const jsonOrNull = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return null;
  }
};
