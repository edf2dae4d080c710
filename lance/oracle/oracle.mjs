// Answers questions about Lance tables with the real Lance library: one JSON command
// per line on standard input, one JSON answer per line on standard output. Tables are
// handed over as directories and rows as Arrow IPC files.
import fs from "node:fs";
import { createRequire } from "node:module";
import readline from "node:readline";
import * as lancedb from "@lancedb/lancedb";

// The library uses this instance of Arrow; another would not know its tables.
const arrow = createRequire(import.meta.url)("apache-arrow");

const connect = (c) => lancedb.connect(c.dir, c.storage ? { storageOptions: c.storage } : {});

const open = async (c) => {
  const db = await connect(c);
  const table = await db.openTable(c.table ?? "log");
  if (c.version) await table.checkout(c.version);
  return table;
};

const query = (table, c) => {
  let q = table.query();
  if (c.lsm === false) q = q.useLsm(false);
  if (c.where) q = q.where(c.where);
  if (c.select) q = q.select(c.select);
  if (c.limit) q = q.limit(c.limit);
  return q;
};

const save = (rows, out) => fs.writeFileSync(out, arrow.tableToIPC(rows, "file"));

// Writers of shards live as long as the handle that they were opened through.
const handles = new Map();
const handle = async (c) => {
  if (!handles.has(c.dir)) handles.set(c.dir, await open(c));
  return handles.get(c.dir);
};

const commands = {
  async create(c) {
    const db = await connect(c);
    const opts = c.format ? { new_table_data_storage_version: c.format } : {};
    await db.inner.createTable(c.table ?? "log", fs.readFileSync(c.rows), "create", [], opts);
  },
  async append(c) {
    const table = await open(c);
    for (let i = 0; i < (c.times ?? 1); i++) await table.inner.add(fs.readFileSync(c.rows), "append");
  },
  async scan(c) {
    save(await query(await open(c), c).toArrow(), c.out);
  },
  async take(c) {
    let q = (await open(c)).takeRowIds(c.rowids.map(BigInt));
    if (c.lsm === false) q = q.useLsm(false);
    if (c.select) q = q.select(c.select);
    save(await q.toArrow(), c.out);
  },
  async count(c) {
    const table = await open(c);
    return { rows: await table.countRows(), version: await table.version() };
  },
  async schema(c) {
    const schema = await (await open(c)).schema();
    return schema.fields.map((f) => `${f.name}:${f.type}${f.nullable ? "?" : ""}`);
  },
  async plan(c) {
    return await query(await open(c), c).explainPlan(true);
  },
  async delete(c) {
    await (await open(c)).delete(c.where);
  },
  async index(c) {
    await (await open(c)).createIndex(c.column, { config: lancedb.Index.btree(), replace: true });
  },
  async indexes(c) {
    return (await (await open(c)).listIndices()).map((i) => i.name);
  },
  async optimize(c) {
    const opts = c.cleanup ? { cleanupOlderThan: new Date(Date.now() + 1000), deleteUnverified: true } : {};
    const stats = await (await open(c)).optimize(opts);
    return { removed: Number(stats.compaction.fragmentsRemoved), added: Number(stats.compaction.fragmentsAdded) };
  },
  async spec(c) {
    const table = await open(c);
    if (c.set) await table.setLsmWriteSpec({ specType: "unsharded", maintainedIndexes: [] });
    return await table.getLsmWriteSpec();
  },
  async merge(c) {
    const builder = (await (await handle(c)).inner.mergeInsert([c.key])).whenMatchedUpdateAll().whenNotMatchedInsertAll();
    await builder.execute(fs.readFileSync(c.rows));
  },
  async close(c) {
    await (await handle(c)).closeLsmWriters();
    handles.delete(c.dir);
  },
  async time(c) {
    const table = await open(c);
    const times = [];
    let rows = 0;
    for (let i = 0; i < c.times; i++) {
      const start = performance.now();
      rows = 0;
      for await (const batch of query(table, c)) rows += batch.numRows;
      times.push(performance.now() - start);
    }
    return { rows, ms: Math.min(...times) };
  },
  async timeAppend(c) {
    const table = await open(c);
    const rows = fs.readFileSync(c.rows);
    const times = [];
    for (let i = 0; i < c.times; i++) {
      const start = performance.now();
      await table.inner.add(rows, "append");
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    return { ms: times[times.length >> 1] };
  },
  async timeFlush(c) {
    const times = [];
    for (let i = 0; i < c.times; i++) {
      const start = performance.now();
      await commands.merge({ ...c, rows: c.files[i] });
      await commands.close(c);
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    return { ms: times[times.length >> 1] };
  },
};

const plain = (value) => JSON.stringify(value ?? null, (_, v) => (typeof v === "bigint" ? v.toString() : v));

for await (const line of readline.createInterface({ input: process.stdin })) {
  const c = JSON.parse(line);
  try {
    console.log(`{"ok":${plain(await commands[c.cmd](c))}}`);
  } catch (e) {
    console.log(plain({ error: String(e?.message ?? e) }));
  }
}
process.exit(0);
