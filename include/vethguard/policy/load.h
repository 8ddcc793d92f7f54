/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: YAML policy files to compiled images, with errors that name file, line, column, the offending text and what
 * would be right. A load that fails yields nothing.
 */
#ifndef VETHGUARD_POLICY_LOAD_H
#define VETHGUARD_POLICY_LOAD_H

#include "vethguard/base/diag.h"
#include "vethguard/policy/policy.h"

#define POLICY_FILE_MAX (64u << 20)  /* bytes of one file */
#define POLICY_INCLUDE_DEPTH_MAX 16
#define POLICY_INCLUDE_FILES_MAX 256

/* How the loader reads files: it does no I/O itself, so that it can be fuzzed and used anywhere. */
struct policy_reader {
	void *context;
	/* Reads path whole into *text (malloc'd, caller frees, NUL-terminated after n bytes). 0 or -errno. */
	int (*read)(void *context, const char *path, char **text, size_t *n);
	const char *preset_dir; /* where "preset:NAME" is looked up, as NAME.yaml */
};

/* The reader that opens real files (bounded, regular files only). */
struct policy_reader policy_reader_files(const char *preset_dir);
/* Where presets are: policies/presets of the source tree when the running program lies in its build/ folder, else
 * VETHGUARD_DATADIR "/presets". The environment is not asked: it may be hostile. */
const char *policy_default_preset_dir(void);

struct policy_load_options {
	bool observe; /* mode: observe whatever the file says (--observe) */
};

/* Loads and compiles. On success *image is malloc'd (caller frees), *size its bytes. -EINVAL: diags say why (at least
 * one message); -ENOMEM. */
int policy_load(const struct policy_reader *reader, const char *path, const struct policy_load_options *options,
	uint8_t **image, size_t *size, struct diag_list *diags);

#endif
