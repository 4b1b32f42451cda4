// A broker for the tests, with members that work as fast as they are let: the real program, on ports of its own.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const READY_MS = 20_000;

export class Broker {
  #process;
  #folder;
  #children = new Set();

  /** Starts it; resolves once it serves. */
  static async start(program) {
    const broker = new Broker();
    const [kafka, http] = [await freePort(), await freePort()];
    broker.program = program;
    broker.bootstrap = `127.0.0.1:${kafka}`;
    broker.url = `http://127.0.0.1:${http}`;
    broker.#folder = await mkdtemp(join(tmpdir(), "anabranch-console-"));
    const args = ["serve", "--data", broker.#folder, "--listen", broker.bootstrap, "--http", `127.0.0.1:${http}`];
    broker.#process = spawn(program, args, { stdio: ["ignore", "ignore", "inherit"] });
    await until(async () => (await fetch(`${broker.url}/readyz`).catch(() => null))?.ok, "the broker to be ready", READY_MS);
    return broker;
  }

  get #environment() {
    return { ...process.env, ANABRANCH_BOOTSTRAP: this.bootstrap, ANABRANCH_ADMIN: this.url };
  }

  /** Runs a command of the program to its end; what it printed. */
  async run(args, input = "") {
    const child = spawn(this.program, args, { env: this.#environment, stdio: ["pipe", "pipe", "pipe"] });
    const [out, err] = [text(child.stdout), text(child.stderr)];
    // A command that takes no input may end before it was offered any.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    const code = await new Promise((resolve) => child.on("close", resolve));
    if (code !== 0) throw new Error(`anabranch ${args.join(" ")} ended with ${code}: ${await err}`);
    return out;
  }

  /** Starts a command that goes on; it is ended with the broker. */
  background(args, stdio = "ignore") {
    const child = spawn(this.program, args, { env: this.#environment, stdio: ["ignore", stdio, "ignore"] });
    this.#children.add(child);
    child.on("exit", () => this.#children.delete(child));
    return child;
  }

  /** A member of a group that takes so many bytes of records a second: its output is a pipe that is read that slowly. */
  member(topic, group, bytesPerSecond) {
    const args = ["consume", topic, "--group", group, "--from", "start"];
    const child = this.background([...args, "-X", `client.id=${group}-${this.#children.size + 1}`], "pipe");
    child.stdout.pause();
    const timer = setInterval(() => child.stdout.read(Math.ceil(bytesPerSecond / 10)) ?? child.stdout.read(), 100);
    child.on("exit", () => clearInterval(timer));
    return {
      async leave() {
        clearInterval(timer);
        child.stdout.resume();
        child.kill("SIGTERM");
        await new Promise((resolve) => child.on("exit", resolve));
      },
    };
  }

  async api(path) {
    const response = await fetch(`${this.url}/api/v1/${path}`);
    return response.json();
  }

  async stop() {
    const ends = [...this.#children, this.#process].map((child) => {
      if (child.exitCode != null || child.signalCode != null) return null;
      const end = new Promise((resolve) => child.on("exit", resolve));
      child.kill("SIGKILL");
      return end;
    });
    await Promise.all(ends);
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Waits until it is so. */
export async function until(check, what, patienceMs = 30_000) {
  const end = Date.now() + patienceMs;
  for (;;) {
    if (await check()) return;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function text(stream) {
  let all = "";
  for await (const chunk of stream) all += chunk;
  return all;
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
