// SPDX-License-Identifier: Apache-2.0
// A backend of deepagents: a container, or a network namespace, that vethguardd guards. deepagents has to be installed
// beside; nothing else of this package needs it.
import { spawn } from "node:child_process";
import { BaseSandbox } from "deepagents";
import { Vethguard, VethguardError } from "./index.js";
import { trust } from "./providers.js";

// Where vethguardd puts the CA in a container.
const CA = "/etc/ssl/certs/vethguard.pem";
const BUNDLE = "/etc/ssl/certs/ca-certificates.crt";
const OUTPUT_MAX = 1024 * 1024; // bytes of a command that are kept
const SAID_MAX = 4096;
const FILE_MAX = 64 * 1024 * 1024;
const BEFORE = { 66: "file_not_found", 77: "permission_denied", 73: "is_directory" }; // what the scripts below exit with

const READ = '[ -e "$1" ] || exit 66; [ ! -d "$1" ] || exit 73; [ -r "$1" ] || exit 77; exec cat -- "$1"';
const WRITE = '[ ! -d "$1" ] || exit 73; mkdir -p -- "$(dirname -- "$1")" 2>/dev/null || exit 77; { cat >"$1"; } 2>/dev/null || exit 77';

export class VethguardSandbox extends BaseSandbox {
  // Guards a running container (network none) or namespace, and gives it the variables that vethguard knows.
  // container: with engine "docker" or "podman"; vethguardd puts the CA into its bundles. netns: a path such as
  // /run/netns/NAME, in which commands run as `user`, an unprivileged one of this host: only their network is another.
  // bundle: a file with the CA (caFiles()), for a namespace.
  static async create({ client = new Vethguard(), name, policy, container, engine = "docker", netns, ttl, vars, bundle, ...rest }) {
    const sandbox = new VethguardSandbox({ client, container, engine, netns, ...rest });
    const body = { name, policy, ...(vars && { vars }), ...(ttl && { ttl_s: ttl }) };
    if (netns) body.netns = netns;
    else Object.assign(body, { pid: await sandbox.#pid(), files: true });
    const answer = await client.call("POST", "/v1/sandboxes", body);
    sandbox.name = answer.name;
    sandbox.warnings = answer.warnings ?? [];
    const env = await client.call("GET", `/v1/sandboxes/${encodeURIComponent(answer.name)}/env`);
    const places = netns ? { ca: bundle, bundle } : { ca: CA, bundle: BUNDLE };
    sandbox.env = { ...(places.bundle && trust({ variables: {} }, places)), ...Object.fromEntries(env.variables.map((v) => [v.name, v.value])), ...rest.env };
    return sandbox;
  }

  constructor({ client, container, engine, netns, user = null, workdir = "/", env = {}, timeoutMs = 600000 }) {
    super();
    if (netns && (!user || user === "root" || Number(user) === 0)) throw new TypeError("a namespace needs an unprivileged user: files are this host's");
    if (!container === !netns) throw new TypeError("one of container and netns is needed");
    Object.assign(this, { client, container, engine, netns, user, workdir, env, timeoutMs, name: null, warnings: [] });
  }

  get id() {
    return this.name;
  }

  async #pid() {
    const { code, out } = await run([this.engine, "inspect", "--format", "{{.State.Pid}}", this.container], {});
    const pid = Number(out.toString().trim());
    if (code !== 0 || !(pid > 0)) throw new VethguardError(`${this.engine}: there is no running container "${this.container}"`);
    return pid;
  }

  #argv(script, words) {
    const variables = Object.entries(this.env).map(([name, value]) => `${name}=${value}`);
    if (this.container)
      return [this.engine, "exec", "-i", "-w", this.workdir, ...(this.user ? ["-u", this.user] : []),
        ...variables.flatMap((variable) => ["-e", variable]), this.container, "sh", "-c", script, "sh", ...words];
    return ["nsenter", `--net=${this.netns}`, ...(this.user ? ["setpriv", `--reuid=${this.user}`, "--clear-groups"] : []), "env", "-i", "-C",
      this.workdir, `PATH=${process.env.PATH}`, ...variables, "sh", "-c", script, "sh", ...words];
  }

  async execute(command) {
    const { code, out, more, said } = await run(this.#argv("exec 2>&1; eval \"$1\"", [command]), { max: OUTPUT_MAX, timeoutMs: this.timeoutMs });
    return { output: out.toString("utf8") + said, exitCode: code, truncated: more };
  }

  async uploadFiles(files) {
    const results = [];
    for (const [path, content] of files) {
      if (!path.startsWith("/")) {
        results.push({ path, error: "invalid_path" });
        continue;
      }
      const { code } = await run(this.#argv(WRITE, [path]), { input: content, timeoutMs: this.timeoutMs });
      results.push({ path, error: code === 0 ? null : BEFORE[code] ?? "permission_denied" });
    }
    return results;
  }

  async downloadFiles(paths) {
    const results = [];
    for (const path of paths) {
      if (!path.startsWith("/")) {
        results.push({ path, content: null, error: "invalid_path" });
        continue;
      }
      const { code, out, more } = await run(this.#argv(READ, [path]), { max: FILE_MAX, timeoutMs: this.timeoutMs });
      const ok = code === 0 && !more;
      results.push({ path, content: ok ? new Uint8Array(out) : null, error: ok ? null : BEFORE[code] ?? "permission_denied" });
    }
    return results;
  }

  // Ends the guard: what is behind it has no network then.
  close() {
    return this.client.call("DELETE", `/v1/sandboxes/${encodeURIComponent(this.name)}`);
  }
}

// {code, out, more, said}: more was said than max, or it was ended for its time (code null).
function run(argv, { input = "", max = OUTPUT_MAX, timeoutMs = 60000 }) {
  return new Promise((resolve, reject) => {
    const child = spawn(argv[0], argv.slice(1), { stdio: ["pipe", "pipe", "pipe"] });
    const chunks = [];
    let size = 0;
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    child.stdout.on("data", (chunk) => {
      if (size < max) chunks.push(chunk.subarray(0, max - size));
      size += chunk.length;
    });
    // The command's own errors are among its output: this is what the engine says, if it runs no command.
    let said = "";
    child.stderr.on("data", (chunk) => {
      said = (said + chunk).slice(0, SAID_MAX);
    });
    child.stdin.on("error", () => {}); // it may end before it has read
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(new VethguardError(`${argv[0]}: ${error.message}`));
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code, out: Buffer.concat(chunks), more: size > max, said });
    });
    child.stdin.end(input);
  });
}
