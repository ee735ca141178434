// Prints the tokens that the TextMate grammar finds in files: for each file an array of `[start, end, scope]` in bytes, one file a line.
// `npm install`, then `npm run --silent tokens FILE..`. Texts that are no files come from the standard input as a JSON array with `-`.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
const path = new URL("syntaxes/spmd.tmLanguage.json", import.meta.url);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(readFileSync(path, "utf8"), "spmd.json"),
});
const grammar = await registry.loadGrammar("source.spmd");

function tokens(text) {
  const found = [];
  let state = textmate.INITIAL;
  let start = 0;
  for (const line of text.split("\n")) {
    const result = grammar.tokenizeLine(line, state);
    const offset = (index) => start + Buffer.byteLength(line.slice(0, index));
    for (const token of result.tokens) {
      if (token.scopes.length > 1) {
        found.push([offset(token.startIndex), offset(Math.min(token.endIndex, line.length)), token.scopes.at(-1)]);
      }
    }
    state = result.ruleStack;
    start += Buffer.byteLength(line) + 1;
  }
  return found;
}

const names = process.argv.slice(2);
const texts = names[0] === "-" ? JSON.parse(readFileSync(0, "utf8")) : names.map((name) => readFileSync(name, "utf8"));
for (const text of texts) {
  console.log(JSON.stringify(tokens(text)));
}
