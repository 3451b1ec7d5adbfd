// Checks proofs of the log in this browser: SHA-256 and Ed25519 of WebCrypto, and nothing of the server's word.
(() => {
  "use strict";
  const text = new TextEncoder();
  const join = (...parts) => {
    const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) { out.set(part, at); at += part.length; }
    return out;
  };
  const number = (value, bytes) => {
    const out = new Uint8Array(bytes);
    for (let at = bytes - 1, rest = BigInt(value); at >= 0; at--, rest >>= 8n) out[at] = Number(rest & 255n);
    return out;
  };
  const encode = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const base64 = (word) => {
    const found = Uint8Array.from(atob(word), (letter) => letter.charCodeAt(0));
    if (encode(found) !== word) throw Error("not canonical base64");
    return found;
  };
  const hex = (word) => Uint8Array.from(word.match(/../g) || [], (pair) => parseInt(pair, 16));
  const hash32 = (word) => {
    const found = base64(word);
    if (found.length !== 32) throw Error("a hash has 32 bytes");
    return found;
  };
  const same = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);
  const sha = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
  const node = (left, right) => sha(Uint8Array.of(1), left, right);
  const sized = (bytes) => join(number(bytes.length, 4), bytes);

  // RFC 9162, 2.1.3.2: the root that a leaf and its path give.
  const rootOf = async (index, size, leaf, path) => {
    if (index >= size) throw Error("the index is not in the tree");
    let fn = BigInt(index), sn = BigInt(size) - 1n, root = leaf;
    for (const part of path) {
      if (sn === 0n) throw Error("the path is too long");
      if (fn & 1n || fn === sn) {
        root = await node(part, root);
        while (!(fn & 1n) && fn !== 0n) { fn >>= 1n; sn >>= 1n; }
      } else root = await node(root, part);
      fn >>= 1n; sn >>= 1n;
    }
    if (sn !== 0n) throw Error("the path is too short");
    return root;
  };

  // A C2SP checkpoint: origin, size, root; then one line for each signature.
  const readHead = (note) => {
    const cut = note.lastIndexOf("\n\n");
    if (cut < 0) throw Error("the head has no signature");
    const signed = note.slice(0, cut + 1), lines = signed.split("\n");
    if (lines.length !== 4 || lines[3] !== "" || !/^(0|[1-9]\d{0,17})$/.test(lines[1])) throw Error("the head is not origin, size and root");
    const signatures = note.slice(cut + 2).split("\n").filter(Boolean).map((line) => {
      const found = /^\u2014 (\S+) (\S+)$/.exec(line);
      if (!found) throw Error("a line of the head is no signature");
      return { name: found[1], raw: base64(found[2]) };
    });
    return { origin: lines[0], size: BigInt(lines[1]), root: hash32(lines[2]), signed, signatures };
  };
  const readKey = async (word) => {
    const [name, id, ...rest] = word.trim().split("+"), raw = base64(rest.join("+"));
    if (raw.length !== 33 || raw[0] !== 1) throw Error("the key is not an Ed25519 key");
    const made = (await sha(text.encode(`${name}\n`), raw)).slice(0, 4);
    if (!same(made, hex(id))) throw Error("the key's id is not that of its name and bytes");
    return { name, id: made, raw: raw.slice(1) };
  };
  const isSigned = async (publicKey, message, signature) => {
    const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
    return crypto.subtle.verify({ name: "Ed25519" }, key, signature, message);
  };
  // True, false, or null: this browser has no Ed25519.
  const checkHead = async (head, key) => {
    if (head.origin !== key.name) throw Error(`the head is of ${head.origin}, the key of ${key.name}`);
    const own = head.signatures.find((one) => one.name === key.name && same(one.raw.slice(0, 4), key.id));
    if (!own) throw Error("the head is not signed by this key");
    try {
      return await isSigned(key.raw, text.encode(head.signed), own.raw.slice(4));
    } catch (error) {
      if (error.name === "NotSupportedError" || error instanceof TypeError) return null;
      throw error;
    }
  };

  const readProof = (file) => {
    const cut = file.indexOf("\n\n"), lines = file.slice(0, cut).split("\n");
    if (cut < 0 || lines[0] !== "c2sp.org/tlog-proof@v1" || !/^extra /.test(lines[1]) || !/^index \d+$/.test(lines[2]))
      throw Error("this is not a .tlog-proof file");
    const extra = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(base64(lines[1].slice(6))));
    return { extra, index: BigInt(lines[2].slice(6)), path: lines.slice(3).map(hash32), head: file.slice(cut + 2) };
  };
  const factLeaf = (entry) =>
    sha(Uint8Array.of(0), hex(entry.originator_id.replace(/-/g, "")), number(entry.version, 8), sized(text.encode(entry.name)), sized(base64(entry.body)));
  const reportLeaf = (report) =>
    sha(Uint8Array.of(0, report.lane), sized(text.encode(report.node_id)), number(report.node_seq, 8), sized(text.encode(report.name)), sized(base64(report.body)));

  // A report below a pin: report in its lane, the lane's record in the pin, the pin a fact.
  const checkReport = async ({ entry, report, lane }) => {
    if (entry.name !== "usage.pinned.v1") throw Error("the fact is no pin");
    const pin = JSON.parse(new TextDecoder().decode(base64(entry.body)));
    const rows = pin.lanes.filter((row) => Number(row.lane) === report.lane);
    if (rows.length !== 1 || BigInt(rows[0].size) !== BigInt(lane.size) || !same(hex(rows[0].head), base64(lane.head)) || !same(hex(rows[0].root), base64(lane.root)))
      throw Error("the pin holds another record of this lane");
    const record = await sha(Uint8Array.of(0, report.lane), number(lane.size, 8), base64(lane.head), base64(lane.root));
    if (!same(await rootOf(report.lane, 64, record, lane.record_path.map(hash32)), hex(pin.lanes_root))) throw Error("the lane's record is not under the pin");
    const root = await rootOf(BigInt(report.position) - 1n, BigInt(lane.size), await reportLeaf(report), lane.path.map(hash32));
    if (!same(root, base64(lane.root))) throw Error("the report is not in its lane");
  };

  const tell = (place, steps) => {
    place.replaceChildren(...steps.map(([how, what]) => {
      const item = document.createElement("li");
      const mark = document.createElement("span");
      mark.className = `pill ${how === "yes" ? "good" : how === "no" ? "bad" : "warn"}`;
      mark.textContent = how === "yes" ? "holds" : how === "no" ? "fails" : "not checked";
      item.append(mark, ` ${what}`);
      return item;
    }));
    const failed = steps.find(([how]) => how === "no");
    document.getElementById("say").textContent = failed ? `fails: ${failed[1]}` : "checked";
  };

  const verify = async (form, place) => {
    const steps = [];
    try {
      if (!window.crypto || !crypto.subtle) {
        return tell(place, [["open", "This browser computes hashes only on pages over https. Use tallystick audit verify FILE."]]);
      }
      const key = await readKey(form.elements.key.value);
      steps.push(["yes", `The key is ${key.name}'s, by its id.`]);
      const file = form.elements.proof.value;
      const proof = file.trim() ? readProof(file) : null;
      const pasted = form.elements.head.value;
      const head = readHead(pasted.trim() ? pasted : proof ? proof.head : "");
      const signed = await checkHead(head, key);
      if (signed === false) throw Error("the signature of the head is wrong");
      steps.push(signed ? ["yes", `The head over ${head.size} facts is signed by the key (Ed25519).`]
        : ["open", "This browser has no Ed25519: the signature of the head was not checked."]);
      if (proof) {
        const own = readHead(proof.head);
        if (own.size !== head.size || !same(own.root, head.root)) {
          const other = await checkHead(own, key);
          if (other === false) throw Error("the signature of the proof's own head is wrong");
          steps.push([other ? "yes" : "open", `The proof stands under a head of its own, over ${own.size} facts.`]);
          if (own.size === head.size) throw Error("two heads over as many facts have different roots: the log has two histories");
        }
        if (!same(await rootOf(proof.index, own.size, await factLeaf(proof.extra.entry), proof.path), own.root))
          throw Error(`fact ${proof.index + 1n} is not in the tree of the head`);
        steps.push(["yes", `Fact ${proof.index + 1n}, ${proof.extra.entry.name}, is in the tree of the head.`]);
        if (proof.extra.report) {
          await checkReport(proof.extra);
          steps.push(["yes", `Report ${proof.extra.report.node_seq} of ${proof.extra.report.node_id} is pinned by that fact.`]);
        }
      } else steps.push(["open", "No proof was pasted: only the head was checked."]);
    } catch (error) {
      steps.push(["no", error.message || "this cannot be read"]);
    }
    tell(place, steps);
  };

  const fetchHead = async (form) => {
    const answer = await fetch("/v1/audit/log/checkpoint", { credentials: "omit" });
    form.elements.head.value = answer.ok ? await answer.text() : "";
  };

  addEventListener("DOMContentLoaded", () => {
    const form = document.getElementById("verify"), place = document.getElementById("verified");
    form.hidden = false;
    form.addEventListener("submit", (event) => { event.preventDefault(); verify(form, place); });
    document.getElementById("newest").addEventListener("click", () => fetchHead(form).catch(() => {}));
    form.elements.file.addEventListener("change", async (event) => {
      const [file] = event.target.files;
      if (file && file.size < 4194304) form.elements.proof.value = await file.text();
    });
  });
})();
