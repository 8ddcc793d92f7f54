/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: the bundle's config.json (OCI runtime specification). It comes from an engine, and parts
 * of it from whoever starts a container: labels, environment, mounts. It is read once, changed in
 * memory, and written beside itself; the original is kept, so that the same bundle can be used
 * again.
 */
#ifndef VETHGUARD_SRC_RUNTIME_CONFIG_H
#define VETHGUARD_SRC_RUNTIME_CONFIG_H

#include <jansson.h>
#include <limits.h>

#include "vethguard/base/slice.h"
#include "runtime/fault.h"

#define CONFIG_FILE "config.json"
#define CONFIG_ORIGINAL "config.json.vethguard"
#define CONFIG_MAX (16u << 20)               /* bytes */
#define CONFIG_EDITED "org.vethguard.edited" /* an annotation of what was written here */
#define CONFIG_MARK_BYTES 33

struct config {
	char bundle[PATH_MAX];        /* absolute */
	json_t *root;                 /* owned; an object */
	bool again;                   /* it is the kept original; the present file is one of ours */
	char mark[CONFIG_MARK_BYTES]; /* what numbers beyond 63 bits are wrapped in meanwhile */
};

/* Reads the bundle's configuration, or its original if this program wrote the present one. Returns
 * false with a fault: no file, larger than CONFIG_MAX, no JSON, a member twice, a member in another
 * case than the specification's. */
bool config_read(struct config *c, const char *bundle, struct fault *fault);
/* Parses a text; the bundle's path is left alone. */
bool config_parse(struct config *c, struct slice text, struct fault *fault);
/* Returns the text (malloc'd), or NULL if there is no memory. */
char *config_text(const struct config *c);
/* Writes it to the bundle in one step, and keeps the original. */
bool config_write(const struct config *c, struct fault *fault);
/* Puts the original back, if there is one. */
void config_restore(const char *bundle);
void config_free(struct config *c);

#endif
