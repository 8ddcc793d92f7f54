/* SPDX-License-Identifier: Apache-2.0 */
/* trust: the files that are mounted into a container (its name server, the CA, the CA's bundles)
 * and its variables. */
#ifndef VETHGUARD_SRC_RUNTIME_TRUST_H
#define VETHGUARD_SRC_RUNTIME_TRUST_H

#include <sys/stat.h>

#include "vethguard/adapter/environment.h"
#include "vethguard/base/buf.h"
#include "runtime/config.h"
#include "runtime/entry.h"

#define TRUST_FILE_MAX (8u << 20) /* bytes of a bundle that is read */
#define TRUST_RESOLV "/etc/resolv.conf"
#define TRUST_BUNDLE "/etc/ssl/certs/ca-certificates.crt" /* there afterwards */
#define TRUST_CA "/etc/ssl/certs/vethguard.pem"

/* answer: of guard_env(). Writes the files into the entry's directory, mounts them in the
 * configuration, and fills env. What the container's own mounts cover is left alone. */
bool trust_install(struct config *c, const struct entry *e, const json_t *answer,
        struct environment *env, struct fault *fault);

/* For hooks: writes the same files into the container's root directory, before its first process
 * runs. */
bool trust_write(const struct config *c, const json_t *answer, struct fault *fault);

/* Returns the root directory's descriptor, or -errno. */
int trust_open_root(const struct config *c);
/* Returns an O_PATH descriptor of a regular file inside the root, or -errno (-ELOOP: it is
 * something else). */
int trust_find(int root, const char *path, struct stat *at);
/* Appends the file that trust_find() returned. Returns false if it is too large or cannot be read.
 */
bool trust_append(int found, const struct stat *at, struct buf *out);

#endif
