// SPDX-License-Identifier: Apache-2.0
// node build.mjs WIT SOURCE OUT: makes a WebAssembly component of the JavaScript SOURCE. WIT is a folder with the world
// `client`; the interfaces of WASI that it names are the ones that jco brings.
import { componentize } from "@bytecodealliance/componentize-js";
import { readFileSync, writeFileSync } from "node:fs";

const [wit, source, out] = process.argv.slice(2);
const { component } = await componentize(readFileSync(source, "utf8"), { witPath: wit, worldName: "client" });
writeFileSync(out, component);
