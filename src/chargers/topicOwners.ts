/** Topics that a charger publishes on (DESIGN 6.2). All others below the site's root are the daemon's. */
const REPORTED = ["ack", "telemetry", "online"];

/**
 * Which client speaks for which charger at a broker with one user name for all: the first that publishes on a charger's
 * topics, until it disconnects. Another charger cannot pass for it meanwhile.
 */
export class TopicOwners {
  readonly #root: string;
  readonly #owners = new Map<string, string>();

  /** `<prefix>/<site>`. */
  constructor(root: string) {
    this.#root = `${root}/`;
  }

  /** Why this client may not publish on a topic; null: it may. Topics outside of the site's root are free. */
  refusal(client: string, topic: string): string | null {
    if (!topic.startsWith(this.#root)) return null;
    const [chargers, charger = "", leaf = "", ...rest] = topic.slice(this.#root.length).split("/");
    if (chargers !== "chargers" || !REPORTED.includes(leaf) || rest.length > 0)
      return "only setpointd publishes there";
    const owner = this.#owners.get(charger) ?? client;
    if (owner !== client) return `${charger} is connected as another client`;
    this.#owners.set(charger, client);
    return null;
  }

  left(client: string): void {
    for (const [charger, owner] of this.#owners) if (owner === client) this.#owners.delete(charger);
  }
}
