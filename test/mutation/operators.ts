import { parseAst } from "rolldown/parseAst";

/** One small change to one source file. */
export interface Mutant {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** The part of the text that is replaced. */
  readonly from: number;
  readonly to: number;
  readonly replacement: string;
  /** The change for a reader, on one line: `a < b` -> `a <= b`. */
  readonly change: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

/** A replacement of one part of the text. */
type Edit = readonly [from: number, to: number, replacement: string];

const SWAPPED: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "&&": "||",
  "||": "&&",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
};
const SWAPPED_CALL: Readonly<Record<string, string>> = {
  min: "max",
  max: "min",
  some: "every",
  every: "some",
};
/** Words of SQL. Each occurrence is a mutant of its own. */
const SQL = /^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/;
const SWAPPED_SQL: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  AND: "OR",
  DESC: "ASC",
  min: "max",
  max: "min",
};
const SQL_WORD = /(?<=\s)(?:<=|>=|<|>|AND|DESC)(?=[\s`"])|\b(?:min|max)(?=\()/g;
/** A larger number is a duration or a size. One more of it makes no difference to a user. */
const LARGEST_OFF_BY_ONE = 10;
const LONGEST_CHANGE = 60;
const LEFT_AT_ONCE = "{ return;";

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

const childrenOf = (node: Node): readonly Node[] =>
  Object.values(node)
    .flatMap((member: unknown) => (Array.isArray(member) ? (member as unknown[]) : [member]))
    .filter(isNode);

/** Swaps the operator that stands between two operands. A comment there makes the position unsafe: no mutant. */
function swapOperator({ left, right, operator }: Node, text: string): readonly Edit[] {
  if (!isNode(left) || !isNode(right) || typeof operator !== "string") return [];
  const swapped = SWAPPED[operator];
  const between = text.slice(left.end, right.start);
  if (swapped === undefined || /\/[/*]/.test(between)) return [];
  const isText = [left, right].some(
    ({ type, value }) => type === "TemplateLiteral" || typeof value === "string",
  );
  if (operator === "+" && isText) return [];
  const from = left.end + between.indexOf(operator);
  return [[from, from + operator.length, swapped]];
}

/** Turns a condition around. An equality is left to its own operator, which would be the same mutant. */
function negate({ test }: Node, text: string): readonly Edit[] {
  if (!isNode(test) || test["operator"] === "===" || test["operator"] === "!==") return [];
  return [[test.start, test.end, `!(${text.slice(test.start, test.end)})`]];
}

/** A value that is there is taken for one that is missing. */
const takeDefault = ({ left, right, operator }: Node): readonly Edit[] =>
  operator === "??" && isNode(left) && isNode(right) ? [[left.start, right.start, ""]] : [];

/** The smaller becomes the larger, "one of them" becomes "all of them". */
function swapCall({ callee }: Node): readonly Edit[] {
  if (!isNode(callee) || !isNode(callee["property"])) return [];
  const { start, end, name } = callee["property"];
  const swapped = typeof name === "string" ? SWAPPED_CALL[name] : undefined;
  return swapped === undefined ? [] : [[start, end, swapped]];
}

/** A statement that compares at another edge, reads in the other order, or asks for one condition of two. */
function changeSql(node: Node, text: string): readonly Edit[] {
  const written = text.slice(node.start + 1, node.end);
  if (!SQL.test(written)) return [];
  return [...written.matchAll(SQL_WORD)].map(({ 0: word, index }) => {
    const from = node.start + 1 + index;
    return [from, from + word.length, SWAPPED_SQL[word] ?? word];
  });
}

/** Drops a statement that remembers a value. */
const dropAssignment = ({ start, end, expression }: Node): readonly Edit[] =>
  isNode(expression) && expression.type === "AssignmentExpression" ? [[start, end, ";"]] : [];

/** Does not wait for a call whose value nobody needs. */
const dropAwait = ({ start, expression }: Node): readonly Edit[] =>
  isNode(expression) && expression.type === "AwaitExpression" && isNode(expression["argument"])
    ? [[start, expression["argument"].start, "void "]]
    : [];

/** Two steps in a row happen in the other order. */
function swapSteps({ body }: Node, text: string): readonly Edit[] {
  const steps = Array.isArray(body) ? (body as unknown[]).filter(isNode) : [];
  return steps.flatMap((step, index): readonly Edit[] => {
    const next = steps[index + 1];
    if (step.type !== "ExpressionStatement" || next?.type !== "ExpressionStatement") return [];
    const [first, second] = [text.slice(step.start, step.end), text.slice(next.start, next.end)];
    return [[step.start, next.end, `${second} ${first}`]];
  });
}

/** Drops a statement that is nothing but a call. */
function dropCall({ start, end, expression }: Node): readonly Edit[] {
  if (!isNode(expression)) return [];
  const { type, argument } = expression;
  const called =
    (type === "AwaitExpression" || type === "UnaryExpression") && isNode(argument) ? argument : expression;
  const isSuper = isNode(called["callee"]) && called["callee"].type === "Super";
  return called.type === "CallExpression" && !isSuper ? [[start, end, ";"]] : [];
}

const returnsValue = (node: Node): boolean =>
  (node.type === "ReturnStatement" && isNode(node["argument"])) ||
  childrenOf(node).some((child) => !child.type.includes("Function") && returnsValue(child));

/** Leaves a function at once. Only for functions without a result, so that the mutant still compiles. */
function returnEarly({ body }: Node): readonly Edit[] {
  if (!isNode(body) || body.type !== "BlockStatement" || returnsValue(body)) return [];
  return childrenOf(body).length < 2 ? [] : [[body.start, body.start + 1, LEFT_AT_ONCE]];
}

function changeLiteral({ start, end, value }: Node): readonly Edit[] {
  if (typeof value === "boolean") return [[start, end, String(!value)]];
  if (typeof value !== "number" || !Number.isInteger(value) || value > LARGEST_OFF_BY_ONE) return [];
  return [[start, end, String(value + 1)]];
}

function editsOf(node: Node, text: string): readonly Edit[] {
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression":
      return [...swapOperator(node, text), ...takeDefault(node)];
    case "CallExpression":
      return swapCall(node);
    case "TemplateLiteral":
      return changeSql(node, text);
    case "BlockStatement":
      return swapSteps(node, text);
    case "IfStatement":
    case "ConditionalExpression":
    case "WhileStatement":
      return negate(node, text);
    case "ExpressionStatement":
      return [...dropCall(node), ...dropAwait(node), ...dropAssignment(node)];
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      return returnEarly(node);
    case "Literal":
      return [...changeLiteral(node), ...changeSql(node, text)];
  }
  return [];
}

/** Types have no behaviour to change, and neither has the text of a module's imports. */
const hasBehaviour = ({ type }: Node): boolean =>
  type !== "ImportDeclaration" &&
  !type.startsWith("TSType") &&
  !type.startsWith("TSInterface") &&
  type !== "TSUnionType";

const oneLine = (text: string): string => {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > LONGEST_CHANGE ? `${line.slice(0, LONGEST_CHANGE)}...` : line;
};

/** The change of a part of a long text: what stands before it is cut. */
function describe(node: Node, [from, to, replacement]: Edit, text: string): string {
  if (replacement === LEFT_AT_ONCE) return "`the whole function` -> `return;`";
  const start = Math.max(node.start, from - LONGEST_CHANGE / 2);
  const before = text.slice(start, node.end);
  const after = text.slice(start, from) + replacement + text.slice(to, node.end);
  return `\`${oneLine(before)}\` -> \`${oneLine(after)}\``;
}

/** All mutants of one source file, in the order of its text. */
export function mutantsOf(file: string, text: string): readonly Mutant[] {
  const visit = (node: Node): readonly Mutant[] => {
    if (!hasBehaviour(node)) return [];
    const own = editsOf(node, text).map((edit): Mutant => {
      const [from, to, replacement] = edit;
      const line = text.slice(0, from).split("\n").length;
      return { file, line, from, to, replacement, change: describe(node, edit, text) };
    });
    return [...own, ...childrenOf(node).flatMap(visit)];
  };
  return visit(parseAst(text, { lang: "ts" }) as unknown as Node).toSorted((a, b) => a.from - b.from);
}

/** The source text with the change in it. */
export const mutated = (text: string, { from, to, replacement }: Mutant): string =>
  text.slice(0, from) + replacement + text.slice(to);
