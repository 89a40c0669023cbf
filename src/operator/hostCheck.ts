import { isIP } from "node:net";

/**
 * Whether the Host of a request is ours. A page of somebody else can have its own name point at this machine (DNS
 * rebinding), and a browser then lets it read our answers: the Host still carries that name. An address is nobody's name.
 */
export function hostCheck(names: readonly string[]): (host: string | undefined) => boolean {
  const ours = new Set(["localhost", ...names.map((name) => name.toLowerCase())]);
  return (host) => {
    // HTTP/1.0: no browser sends that.
    if (host === undefined) return true;
    const [, six, other = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
    if (six !== undefined) return isIP(six) === 6;
    const name = other.toLowerCase().replace(/\.$/, "");
    return isIP(name) === 4 || ours.has(name) || name.endsWith(".localhost");
  };
}
