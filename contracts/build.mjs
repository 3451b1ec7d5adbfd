// Compiles contracts/src with the pinned npm compiler and writes one artifact per contract.
//
//   node build.mjs [OUT_DIR]     default: contracts/artifacts; NODE_MODULES names another module folder
//
// The artifacts are committed, so using the contracts needs no compiler; the rebuild test runs this
// into an empty folder and compares bytes. Settings are pinned: the defaults of solc move.
import { createHash } from "node:crypto";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const modules = process.env.NODE_MODULES || path.join(here, "node_modules");
const out = process.argv[2] || path.join(here, "artifacts");
const solc = createRequire(import.meta.url)(path.join(modules, "solc"));

const read = (file) => fs.readFileSync(file, "utf8");
const own = fs.readdirSync(path.join(here, "src")).filter((name) => name.endsWith(".sol")).sort();

// Every import is closed over ahead of compiling, so the hash of the input covers the libraries too.
const sources = {};
function add(name) {
  if (name in sources) return;
  const file = name.startsWith("@") ? path.join(modules, name) : path.join(here, "src", name);
  sources[name] = { content: read(file) };
  for (const [, target] of sources[name].content.matchAll(/^\s*import\s+(?:[^;]*?from\s+)?"([^"]+)";/gm)) {
    add(target.startsWith(".") ? path.posix.normalize(path.posix.join(path.posix.dirname(name), target)) : target);
  }
}
own.forEach(add);

const settings = {
  evmVersion: "cancun",
  optimizer: { enabled: true, runs: 10000 },
  viaIR: false,
  metadata: { bytecodeHash: "none", appendCBOR: false },
};
const outputs = [
  "abi",
  "evm.bytecode.object",
  "evm.deployedBytecode.object",
  "evm.deployedBytecode.immutableReferences",
  "evm.methodIdentifiers",
  "storageLayout",
];
const sorted = Object.fromEntries(Object.keys(sources).sort().map((name) => [name, sources[name]]));
const input = JSON.stringify({
  language: "Solidity",
  sources: sorted,
  settings: { ...settings, outputSelection: { "*": { "*": outputs } } },
});
const result = JSON.parse(solc.compile(input));
for (const problem of result.errors || []) console.error(problem.formattedMessage);
if ((result.errors || []).length) process.exit(1); // warnings too: the sources compile clean

const sha256 = createHash("sha256").update(input).digest("hex");
fs.mkdirSync(out, { recursive: true });
const written = [];
for (const file of own) {
  for (const [name, made] of Object.entries(result.contracts[file])) {
    if (!made.evm.bytecode.object) continue; // abstract
    // AST ids number the whole compilation: they are no part of what a contract is.
    const plain = (type) => type.replace(/\)\d+/g, ")");
    const storage = made.storageLayout.storage.map(({ label, offset, slot, type }) => ({
      label, offset, slot, type: plain(type),
    }));
    const immutables = Object.values(made.evm.deployedBytecode.immutableReferences).flat()
      .sort((a, b) => a.start - b.start);
    const artifact = {
      contract: name,
      source: `contracts/src/${file}`,
      compiler: solc.version(),
      settings,
      input_sha256: sha256,
      abi: made.abi,
      method_ids: made.evm.methodIdentifiers,
      storage_layout: storage,
      initcode: "0x" + made.evm.bytecode.object,
      runtime: "0x" + made.evm.deployedBytecode.object,
      immutable_references: immutables,
    };
    written.push(`${name}.json`);
    fs.writeFileSync(path.join(out, `${name}.json`), JSON.stringify(artifact, null, 1) + "\n");
    console.log(`${name}: ${artifact.runtime.length / 2 - 1} bytes`);
  }
}

// What was compiled into what, so that a change of either is seen without a compiler.
const hash = (file) => createHash("sha256").update(fs.readFileSync(file)).digest("hex");
const compiled = [...own.map((name) => `src/${name}`), "build.mjs", "package-lock.json"];
const hashes = Object.fromEntries(compiled.map((name) => [name, hash(path.join(here, name))]));
for (const name of written.sort()) hashes[`artifacts/${name}`] = hash(path.join(out, name));
fs.writeFileSync(path.join(out, "sources.json"), JSON.stringify(hashes, null, 1) + "\n");
