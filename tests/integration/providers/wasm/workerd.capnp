# SPDX-License-Identifier: Apache-2.0
# workerd with one worker, which may reach every address: vethguard is what holds it back.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker", esModule = embed "worker.mjs")],
      compatibilityDate = "2025-01-01",
    )),
    (name = "internet", network = (
      allow = ["public", "private", "local"],
      tlsOptions = (trustBrowserCas = true),
    )),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "main")],
);
