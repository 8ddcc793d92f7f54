// SPDX-License-Identifier: Apache-2.0
// A command of WASI 0.2. Each argument is `METHOD URL`; it asks through wasi:http, and prints one line of JSON each.
import { getArguments } from "wasi:cli/environment@0.2.12";

export const run = {
  async run() {
    for (const [method, url] of getArguments().slice(1).map((argument) => argument.split(" "))) {
      try {
        const response = await fetch(url, { method });
        console.log(JSON.stringify({ url, status: response.status, body: await response.text() }));
      } catch (error) {
        console.log(JSON.stringify({ url, error: String(error) }));
      }
    }
  },
};
