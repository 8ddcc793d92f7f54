// SPDX-License-Identifier: Apache-2.0
export class VethguardError extends Error {
  status: number;
  problem: unknown;
}
export interface ClientOptions {
  socket?: string;
  url?: string | null;
  headers?: Record<string, string>;
  timeoutMs?: number;
  ca?: string;
}
export interface SessionOptions {
  policy: string;
  name?: string;
  vars?: Record<string, string>;
  labels?: Record<string, string>;
  ttl?: number | string;
  from?: string | string[];
  observe?: boolean;
}
export interface Place {
  text: string;
  host: string;
  port: number;
  family: 0 | 4 | 6;
}
export interface Inside {
  tls: Place | null;
  plain: Place | null;
  variables: Record<string, string>;
  ca: string;
}
export class Vethguard {
  constructor(options?: ClientOptions);
  call(method: string, path: string, body?: unknown): Promise<any>;
  createSession(options: SessionOptions): Promise<Session>;
  session(name: string, token?: string | null): Session;
  sessions(): Promise<Record<string, unknown>[]>;
}
export class Session {
  constructor(client: Vethguard, name: string, token: string | null);
  readonly name: string;
  readonly token: string | null;
  show(): Promise<Record<string, unknown>>;
  extend(ttl: number | string): Promise<Record<string, unknown>>;
  revoke(): Promise<Record<string, unknown>>;
  inside(): Promise<Inside>;
}
export function createSession(options: SessionOptions & { client?: Vethguard }): Promise<Session>;
export function seconds(time: number | string): number;

export interface Places {
  ca?: string;
  bundle?: string;
}
type Env = Record<string, string>;
export function caFiles(session: Session, options?: Places & { gatewayCa?: string }): Promise<Record<string, string>>;
export function e2b(session: Session, options?: Places & { way?: "socks" }): Promise<{
  network: { egressProxy: { address: string; username: string; password: string } };
  envs: Env;
}>;
export function e2b(session: Session, options: Places & { way: "proxy" }): Promise<{
  network: { allowOut: string[]; denyOut: string[] };
  envs: Env;
}>;
export function modal(session: Session, options?: Places): Promise<{
  outboundCidrAllowlist?: string[];
  outboundDomainAllowlist?: string[];
  env: Env;
}>;
export function daytona(session: Session, options?: Places): Promise<{
  networkAllowList?: string;
  domainAllowList?: string;
  envVars: Env;
}>;
export function deno(session: Session, options?: Places): Promise<{ allowNet: string[]; env: Env }>;
export function runloop(session: Session, options?: Places & { gatewayCa?: string }): Promise<{
  networkPolicy: {
    name: string;
    allow_all: false;
    allowed_cidrs?: { cidr: string; ports: { port: number; protocol: "TCP" }[] }[];
    allowed_hostnames?: string[];
  };
  devbox(policyId: string): {
    environment_variables: Env;
    file_mounts: Record<string, string>;
    launch_parameters: { network_policy_id: string };
  };
}>;
export function langsmith(session: Session, options?: Places): Promise<{
  proxyConfig: { access_control: { allow_list: string[] } };
  runConfig: { env_vars: Env };
}>;
export interface VercelOptions {
  networkPolicy: { allow: string[] } | { subnets: { allow: string[] } };
  env: Env;
}
export interface VercelForwardOptions {
  networkPolicy: { allow: Record<string, [{ forwardURL: string }]> };
  env: Env;
}
export function vercel(session: Session, options?: Places & { way?: "proxy" }): Promise<VercelOptions>;
export function vercel(session: Session, options: { way: "forward"; hosts: string[] }): Promise<VercelForwardOptions>;
export function openaiAgents(session: Session, options?: Places & { client?: "vercel" }): Promise<VercelOptions>;
export function openaiAgents(session: Session, options: Places & { client: "e2b" | "daytona" | "modal" | "runloop" }): Promise<{ env: Env }>;
