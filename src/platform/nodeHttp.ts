/**
 * `node:http` and `node:https` without an `import` of them: an import reads every export, and so loads the WebSocket
 * client of Node, which takes 50 ms of CPU at each start.
 */
export const { createServer: createHttpServer, STATUS_CODES } = process.getBuiltinModule("node:http");
export const { createServer: createHttpsServer, Server: HttpsServer } =
  process.getBuiltinModule("node:https");
