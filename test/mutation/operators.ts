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
/** A larger number is a duration or a size. One more of it makes no difference to a user. */
const LARGEST_OFF_BY_ONE = 10;
const LONGEST_CHANGE = 60;

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
  return childrenOf(body).length < 2 ? [] : [[body.start, body.start + 1, "{ return;"]];
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
      return swapOperator(node, text);
    case "IfStatement":
    case "ConditionalExpression":
    case "WhileStatement":
      return negate(node, text);
    case "ExpressionStatement":
      return dropCall(node);
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      return returnEarly(node);
    case "Literal":
      return changeLiteral(node);
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

/** All mutants of one source file, in the order of its text. */
export function mutantsOf(file: string, text: string): readonly Mutant[] {
  const visit = (node: Node): readonly Mutant[] => {
    if (!hasBehaviour(node)) return [];
    const own = editsOf(node, text).map(([from, to, replacement]): Mutant => {
      const isBody = replacement === "{ return;";
      const before = isBody ? "the whole function" : text.slice(node.start, node.end);
      const after = isBody
        ? "return;"
        : text.slice(node.start, from) + replacement + text.slice(to, node.end);
      return {
        file,
        line: text.slice(0, from).split("\n").length,
        from,
        to,
        replacement,
        change: `\`${oneLine(before)}\` -> \`${oneLine(after)}\``,
      };
    });
    return [...own, ...childrenOf(node).flatMap(visit)];
  };
  return visit(parseAst(text, { lang: "ts" }) as unknown as Node).toSorted((a, b) => a.from - b.from);
}

/** The source text with the change in it. */
export const mutated = (text: string, { from, to, replacement }: Mutant): string =>
  text.slice(0, from) + replacement + text.slice(to);
