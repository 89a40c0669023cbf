/** Resolves with the first signal to stop; a second one does not wait for anything. */
export function stopSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let asked = false;
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (asked) process.exit(1);
      asked = true;
      resolve(signal);
    });
  }
  return promise;
}
