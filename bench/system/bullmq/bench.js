// SPDX-License-Identifier: Apache-2.0

// Producers and handlers of BullMQ. Orders come as lines of JSON on the standard input, each with a
// number; answers go to the standard output with that number. Deliveries go there too, as lines of
// pairs: the index of a message, and how many microseconds after its due time its handler began.

import { createInterface } from "node:readline";

import { Queue, Worker } from "bullmq";

const [port] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port) };
const kept = { removeOnComplete: true, removeOnFail: true };
const flushAfter = 5; // milliseconds

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const queues = new Map();
function queueOf(name) {
  if (!queues.has(name)) queues.set(name, new Queue(name, { connection }));
  return queues.get(name);
}

// epoch is when the monotonic clock was zero, in microseconds. It is read where the millisecond
// changes, the latest of some attempts: what comes between makes it seem earlier, never later.
const epoch = (() => {
  let latest = -Infinity;
  for (let i = 0; i < 10; i++) {
    const before = Date.now();
    while (Date.now() === before);
    latest = Math.max(latest, Date.now() * 1000 - performance.now() * 1000);
  }
  return latest;
})();
const now = () => epoch + performance.now() * 1000;

// body as the harness makes it: index and due time in nanoseconds, 16 hexadecimal digits each.
function body(index, due, size) {
  const nanos = due === 0 ? "0" : (BigInt(Math.round(due)) * 1000n).toString(16);
  return (index.toString(16).padStart(16, "0") + nanos.padStart(16, "0")).padEnd(size, ".");
}

const never = "0".repeat(16);

let came = [];
let flushing;
function enter(text) {
  const at = now();
  const nanos = text.slice(16, 32);
  const due = nanos === never ? 0 : Number(BigInt("0x" + nanos) / 1000n);
  came.push(parseInt(text.slice(0, 16), 16), Math.floor(at - due));
  flushing ??= setTimeout(flush, flushAfter);
}

function flush() {
  clearTimeout(flushing);
  flushing = undefined;
  if (came.length === 0) return;
  process.stdout.write(JSON.stringify({ came }) + "\n");
  came = [];
}

// produce lets producers enqueue, each of which waits for its answers. Due times are in microseconds,
// 0 is now.
async function produce({ queue, producers, batch, size, first, most, millis, due, apart }) {
  const q = queueOf(queue);
  await q.waitUntilReady();
  const until = millis > 0 ? performance.now() + millis : Infinity;
  let next = 0;
  const job = (i) => {
    const at = due === 0 ? 0 : due + (first + i) * apart;
    const opts = at === 0 ? kept : { ...kept, delay: Math.max(0, Math.ceil(at / 1000) - Date.now()) };
    return { name: "bench", data: { body: body(first + i, at, size) }, opts };
  };
  const producer = async () => {
    while (next + batch <= most && performance.now() < until) {
      const i = next;
      next += batch;
      if (batch === 1) {
        const { name, data, opts } = job(i);
        await q.add(name, data, opts);
      } else {
        await q.addBulk(Array.from({ length: batch }, (_, j) => job(i + j)));
      }
    }
  };
  await Promise.all(Array.from({ length: producers }, producer));
  return { sent: next };
}

let workers = [];

async function consume({ queues: names, handlers }) {
  workers = names.map((name) => new Worker(name, async (job) => enter(job.data.body), { connection, concurrency: handlers }));
  for (const w of workers) w.on("error", (err) => process.stderr.write(err.stack + "\n"));
  await Promise.all(workers.map((w) => w.waitUntilReady()));
  return {};
}

async function stop() {
  await Promise.all(workers.map((w) => w.close()));
  workers = [];
  flush();
  return {};
}

async function pending({ queue }) {
  const counts = await queueOf(queue).getJobCounts("wait", "active", "delayed", "prioritized", "failed");
  return { sent: Object.values(counts).reduce((a, b) => a + b, 0) };
}

// warm lets the compiler see what the time will be taken of.
async function warm({ most }) {
  const queue = `warm-${process.pid}`;
  await produce({ queue, producers: 16, batch: 1, size: 256, first: 0, most, millis: 0, due: 0, apart: 0 });
  let left = most;
  let done;
  const all = new Promise((resolve) => (done = resolve));
  const worker = new Worker(queue, async (job) => enter(job.data.body), { connection, concurrency: 16 });
  worker.on("completed", () => --left === 0 && done());
  await all;
  await worker.close();
  came = [];
  return {};
}

const orders = { warm, produce, consume, stop, pending };

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const order = JSON.parse(line);
    orders[order.do](order).then(
      (answer) => say({ number: order.number, ...answer }),
      (err) => say({ number: order.number, error: String(err.stack ?? err) }),
    );
  })
  .on("close", () => process.exit(0)); // the harness is done
