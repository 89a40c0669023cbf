import * as z from "zod";

interface Node {
  readonly description?: string | undefined;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Node>> | undefined;
  readonly items?: Node | undefined;
  readonly anyOf?: readonly Node[] | undefined;
}

const node: z.ZodType<Node> = z.object({
  description: z.string().optional(),
  default: z.unknown().optional(),
  get properties() {
    return z.record(z.string(), node).optional();
  },
  get items() {
    return node.optional();
  },
  get anyOf() {
    return z.array(node).optional();
  },
});

export interface Key {
  /** `chargers[].current.max` */
  readonly path: string;
  readonly sentence: string;
  readonly preset: unknown;
}

/** The keys below a node. Of a choice (a secret, an atEnd) they count only where one alternative alone has keys. */
function below(at: Node, path: string): readonly Key[] {
  const sections = (at.anyOf ?? []).filter(({ properties }) => properties !== undefined);
  const only = sections.length === 1 ? sections[0] : undefined;
  return [
    ...Object.entries(at.properties ?? {}).flatMap(([key, child]) => {
      const here = path === "" ? key : `${path}.${key}`;
      return [
        { path: here, sentence: child.description ?? "", preset: child.default },
        ...below(child, here),
      ];
    }),
    ...(at.items === undefined ? [] : below(at.items, `${path}[]`)),
    ...(only === undefined ? [] : below(only, path)),
  ];
}

/** All keys of the configuration, from its JSON Schema. */
export const keysOf = (jsonSchema: string): readonly Key[] => below(node.parse(JSON.parse(jsonSchema)), "");
