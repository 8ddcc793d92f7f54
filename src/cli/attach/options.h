/* SPDX-License-Identifier: Apache-2.0 */
/* attach_options: the command line of `vethguard attach`. */
#ifndef VETHGUARD_SRC_CLI_ATTACH_OPTIONS_H
#define VETHGUARD_SRC_CLI_ATTACH_OPTIONS_H

#include <stdint.h>

#include "cli/attach/commands.h"

#define ATTACH_WORDS_MAX 64

struct attach_words {
	size_t count;
	const char *items[ATTACH_WORDS_MAX];
};

struct attach_options {
	struct control_line line;
	const char *interface, *netns, *container, *engine, *listen;
	const char *listen_mode, *listen_owner;
	int pid; /* 0: none */
	const char *policy, *name;
	struct attach_words addresses, labels, vars; /* labels and vars: KEY=VALUE */
	uint64_t ttl_s;                              /* 0: none */
	bool observe, files;
};

/* Returns -1: go on; or the exit status, after help or a message. */
int attach_options_read(char **argv, struct attach_options *out);
/* listen.c: adds what --listen and its companions say. Returns false after a message. */
bool attach_add_listen(struct json_t *body, const struct attach_options *options);
/* Takes one option of `attach` or `claim` into a struct attach_options. Returns false after a
 * message. */
bool attach_option_take(void *options, const char *option, const char *value);
/* Converts "90", "90s", "30m", "2h", "7d" to seconds. Returns false if text is not a time, or 0. */
bool attach_ttl_read(const char *text, uint64_t *out);

/* attach.c: adds members to a request. Each returns 0, or an exit status after a message: name,
 * policy, observe, labels, variables and ttl_s; the namespace, by its absolute path. */
int attach_add_identity(json_t *body, const struct attach_options *options);
int attach_add_netns(json_t *body, const char *path);

#endif
