// SPDX-License-Identifier: Apache-2.0
import { BaseSandbox, type ExecuteResponse, type FileDownloadResponse, type FileUploadResponse } from "deepagents";
import type { Vethguard } from "./index.js";

export interface SandboxOptions {
  client?: Vethguard;
  name?: string;
  policy: string;
  container?: string;
  engine?: "docker" | "podman";
  netns?: string;
  user?: string;
  workdir?: string;
  bundle?: string;
  ttl?: number;
  vars?: Record<string, string>;
  env?: Record<string, string>;
  timeoutMs?: number;
}
export class VethguardSandbox extends BaseSandbox {
  static create(options: SandboxOptions): Promise<VethguardSandbox>;
  readonly id: string;
  readonly name: string;
  readonly warnings: string[];
  execute(command: string): Promise<ExecuteResponse>;
  uploadFiles(files: [string, Uint8Array][]): Promise<FileUploadResponse[]>;
  downloadFiles(paths: string[]): Promise<FileDownloadResponse[]>;
  close(): Promise<unknown>;
}
